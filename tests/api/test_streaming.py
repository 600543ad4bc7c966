"""Relay of streams over real HTTP, with the official client as the judge."""

import logging
import time
from typing import Any

import openai
import orjson
import pytest

from gateway.api.calls import StreamTimes
from gateway.metering.record import CallStatus
from tests.support.gateway import KEY, MODEL, RunningGateway, running_gateway
from tests.support.machine import slowness
from tests.support.scripts import Sse, after, chat_chunk, never, raw, usage_chunk
from tests.support.upstream import ScriptedUpstream

TEXTS = ["é", "日本", "🙂", "a", "b"]
CHUNKS: list[Any] = [
    chat_chunk("", role="assistant"),
    *(chat_chunk(text) for text in TEXTS),
    chat_chunk(finish="stop"),
]


def lines(gateway: RunningGateway, **members: Any) -> list[str]:
    """The data of every event of a streamed chat call."""
    answer = gateway.chat(stream=True, **members)
    assert answer.status_code == 200
    return [line[6:] for line in answer.text.split("\n") if line.startswith("data: ")]


def text_of(events: list[str]) -> str:
    """The joined content."""
    chunks = [orjson.loads(event) for event in events if event != "[DONE]"]
    return "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])


def sdk(gateway: RunningGateway) -> openai.OpenAI:
    """The official client, without retries of its own."""
    return openai.OpenAI(base_url=gateway.url, api_key=KEY, max_retries=0)


@pytest.mark.parametrize("cut", [1, 7, "all"])
def test_str_01_events_cut_at_any_byte(
    upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture, cut: Any
) -> None:
    """STR-01: however the bytes are cut, the text, the JSON and the usage are whole."""
    upstream.enqueue(Sse([*CHUNKS, usage_chunk(3, 5)], cut=cut))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        events = lines(gateway)
        assert text_of(events) == "é日本🙂ab"
        assert "\ufffd" not in "".join(events)
        usage = gateway.settled(1)[0].outcome.usage
        assert (usage.prompt, usage.completion, usage.estimated) == (3, 5, False)
        assert all(orjson.loads(event) for event in events[:-1])
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_str_02_crlf_and_no_space(upstream: ScriptedUpstream) -> None:
    """STR-02: CRLF and a missing space change nothing."""
    events = [*CHUNKS, usage_chunk(3, 5)]
    upstream.enqueue(Sse(events, eol="\r\n", space=False), Sse(events))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        first, second = lines(gateway), lines(gateway)
        assert first[-1] == second[-1] == "[DONE]"
        parsed = [[orjson.loads(e) for e in got[:-1]] for got in (first, second)]
        assert parsed[0] == parsed[1]
        records = gateway.settled(2)
        assert records[0].outcome.usage == records[1].outcome.usage


def test_str_04_heartbeats(upstream: ScriptedUpstream) -> None:
    """STR-04: comments reach no client as data and do not count as the first token."""
    beats: list[Any] = [b": WORKING\n"] * 6 + [b":\n\n"]
    script = Sse([*beats, *map(chat_chunk, "abc"), chat_chunk(finish="stop")], pause=0.05)
    upstream.enqueue(script, script)
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        with sdk(gateway) as client:
            stream = client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": "x"}], stream=True
            )
            texts = [chunk.choices[0].delta.content for chunk in stream]
        assert [text for text in texts if text] == ["a", "b", "c"]
        assert not [
            line for line in gateway.chat(stream=True).text.split("\n") if line[:7] == "data: :"
        ]
        ttft = gateway.settled(1)[0].outcome.timing.ttft_s
        assert ttft is not None
        assert ttft >= 0.3


def test_str_06_several_data_lines(upstream: ScriptedUpstream) -> None:
    """STR-06: an event whose JSON is split over data lines arrives as one valid event."""
    whole = orjson.dumps(chat_chunk("joined"))
    cut = whole.index(b',"choices"')
    split = b"data: " + whole[:cut] + b"\ndata: " + whole[cut:] + b"\n\n"
    upstream.enqueue(Sse([split, chat_chunk(finish="stop")]))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        events = lines(gateway)
        assert len(events) == 3
        assert orjson.loads(events[0]) == chat_chunk("joined")


@pytest.mark.parametrize("end", ["body", "close", "reset"])
def test_str_07_early_end(upstream: ScriptedUpstream, end: Any) -> None:
    """STR-07: a stream that ends early gives its chunks, one error event and no [DONE]."""
    upstream.enqueue(*[Sse([chat_chunk(text) for text in "abc"], end=end, pause=0.02)] * 2)
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        events = lines(gateway)
        assert text_of(events[:-1]) == "abc"
        error = orjson.loads(events[-1])["error"]
        assert error["code"] == "upstream_stream_interrupted"
        assert {"message", "type", "param", "code"} == set(error)
        with sdk(gateway) as client, pytest.raises(openai.APIError):
            list(
                client.chat.completions.create(
                    model=MODEL, messages=[{"role": "user", "content": "x"}], stream=True
                )
            )
        assert gateway.settled(2)[0].outcome.status is CallStatus.FAILED


@pytest.mark.parametrize(("code", "status"), [("insufficient_quota", 429), ("who_knows", 502)])
def test_str_09_error_as_first_event(upstream: ScriptedUpstream, code: str, status: int) -> None:
    """STR-09: an error object as the first event of a 200 becomes a status and a JSON error."""
    upstream.enqueue(Sse([{"error": {"message": "quota", "code": code, "type": code}}]))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        answer = gateway.chat(stream=True)
        assert answer.status_code == status
        assert answer.json()["error"]["code"] == code
        assert len(upstream.calls()) == 1


def test_content_and_an_error_in_one_piece_are_both_shown(upstream: ScriptedUpstream) -> None:
    """As if they had come one after the other: how bytes are cut decides nothing."""
    failure = {"error": {"message": "the engine died", "type": "server_error", "code": 500}}
    body = b"".join(b"data: %b\n\n" % orjson.dumps(one) for one in [*CHUNKS[:3], failure])
    upstream.enqueue(raw(body, headers={"content-type": "text/event-stream"}))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        *content, last = lines(gateway)
        assert text_of(content) == "".join(TEXTS[:2])
        assert "error" in orjson.loads(last)
        [record] = gateway.settled(1)
        assert (record.outcome.status, record.outcome.usage.estimated) == (CallStatus.FAILED, True)
    assert len(upstream.requests) == 1


def test_str_11_client_leaves_mid_stream(upstream: ScriptedUpstream) -> None:
    """STR-11: the client's leaving closes the upstream and frees the place within a second."""
    upstream.enqueue(Sse([chat_chunk("x") for _ in range(100)], pause=0.2))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        with gateway.streamed() as answer:
            got = answer.iter_lines()
            while next(got) != "":
                pass
        left = time.monotonic()
        record = gateway.settled(1, timeout=1.0)[0]
        upstream.wait(lambda: upstream.requests[0].peer_closed_at, timeout=1.0)
        assert time.monotonic() - left < 1
        assert record.outcome.status is CallStatus.CANCELLED
        assert record.outcome.usage.completion >= 1
        assert gateway.admission.running("up", record.intent.lane) == 0


@pytest.mark.parametrize("stream", [True, False])
def test_str_12_client_leaves_before_first_token(
    upstream: ScriptedUpstream, *, stream: bool
) -> None:
    """STR-12: leaving before any header, streamed or not, closes the upstream."""
    upstream.on(MODEL, never())
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        gateway.given_up(stream=stream)
        upstream.wait(lambda: upstream.requests[0].peer_closed_at, timeout=1.0)
        record = gateway.settled(1, timeout=1.0)[0]
        assert (record.outcome.status, record.outcome.http_status) == (CallStatus.CANCELLED, 499)
        assert gateway.admission.running("up", record.intent.lane) == 0


def test_str_16_no_buffering(upstream: ScriptedUpstream) -> None:
    """STR-16: each chunk arrives when it was written, unpacked, with the headers proxies need."""
    upstream.enqueue(
        Sse([chat_chunk(str(n)) for n in range(20)] + [chat_chunk(finish="stop")], pause=0.05)
    )
    with (
        running_gateway({"up": {"base_url": upstream.url}}) as gateway,
        gateway.streamed(accept_encoding="gzip") as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in answer.headers
        assert "no-cache" in answer.headers["cache-control"]
        assert answer.headers["x-accel-buffering"] == "no"
        arrived = [time.monotonic() for line in answer.iter_lines() if '"content"' in line]
        written = upstream.requests[0].sent[1:21]
        delays = sorted(a - w for a, w in zip(arrived, written, strict=True))
        assert delays[-2] < 0.05 * slowness()  # the 95th percentile of 20
        assert delays[10] < 0.05


def test_str_18_tool_call_fragments(upstream: ScriptedUpstream) -> None:
    """STR-18: interleaved tool calls arrive unchanged and in order."""

    def piece(index: int, arguments: str, **first: Any) -> dict[str, Any]:
        call = {"index": index, "function": {"arguments": arguments}, **first}
        if first:
            call["function"] = {"name": f"f{index}", "arguments": arguments}
        return chat_chunk(tool_calls=[call])

    chunks = [
        piece(0, '{"a"', id="call_0", type="function"),
        piece(1, '{"b"', id="call_1", type="function"),
        *(piece(i, part) for part in (":1", "}") for i in (0, 1)),
        chat_chunk(finish="tool_calls"),
    ]
    upstream.enqueue(Sse(chunks))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        assert [orjson.loads(event) for event in lines(gateway)[:-1]] == chunks


def test_str_19_usage_chunk_only_when_asked(upstream: ScriptedUpstream) -> None:
    """STR-19, MET-01: the usage chunk comes last and only to who asked; the meter always has it."""
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        asked = lines(gateway, stream_options={"include_usage": True})
        last = orjson.loads(asked[-2])
        assert last["choices"] == []
        assert last["usage"]["completion_tokens"] == 16
        assert all(orjson.loads(event)["usage"] is None for event in asked[:-2])
        unasked = lines(gateway)
        assert all(orjson.loads(event)["choices"] for event in unasked[:-1])
        assert upstream.requests[1].json["stream_options"] == {"include_usage": True}
        first, second = gateway.settled(2)
        assert first.outcome.usage == second.outcome.usage
        assert not second.outcome.usage.estimated


def test_no_sign_of_life_after_the_last_event(
    upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    """The target may take its time to end its body."""
    done = b"data: [DONE]\n\n"
    upstream.on(MODEL, Sse([chat_chunk("a", finish="stop"), done], end="hang"))
    times = StreamTimes(head_hold=0.02, keep_alive=0.02)
    with running_gateway({"up": {"base_url": upstream.url}}, times=times) as gateway:
        for _ in range(3):
            assert gateway.chat(stream=True).text.endswith("data: [DONE]\n\n")
        gateway.settled(3)
        time.sleep(0.3)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_head_hold_then_keep_alive(upstream: ScriptedUpstream) -> None:
    """After the hold the head goes out with comments; a failure then is an error event."""
    upstream.enqueue(
        after(0.5, Sse([chat_chunk("a"), chat_chunk(finish="stop")])),
        after(0.5, Sse([{"error": {"message": "no", "code": "x"}}])),
    )
    times = StreamTimes(head_hold=0.1, keep_alive=0.1)
    with running_gateway({"up": {"base_url": upstream.url}}, times=times) as gateway:
        served = gateway.chat(stream=True)
        assert served.text.count(": keep-alive") >= 3
        assert served.text.rstrip().endswith("data: [DONE]")
        assert "x-headway-target" not in served.headers
        failed = gateway.chat(stream=True)
        assert failed.status_code == 200
        assert "[DONE]" not in failed.text
        assert '"error"' in failed.text


def test_finish_without_done_is_complete(upstream: ScriptedUpstream) -> None:
    """A target that forgets [DONE] after its finish reason gave a whole answer."""
    upstream.enqueue(Sse([chat_chunk("a"), chat_chunk(finish="stop")], end="body"))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        assert lines(gateway)[-1] == "[DONE]"
        assert gateway.settled(1)[0].outcome.status is CallStatus.OK
