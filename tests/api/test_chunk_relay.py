"""Events on their way to the client."""

import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api.chunk_relay import ChunkRelay
from gateway.api.relay import HEARTBEAT
from gateway.core.errors import StreamInterrupted, UpstreamFailed, UpstreamThrottled
from gateway.core.large_json import LARGE
from gateway.metering.record import CallStatus
from gateway.providers import sse
from gateway.providers.scrubber import Scrubber
from gateway.schemas.requests import ModelRequest
from tests.support.gateway import running_gateway
from tests.support.scripts import Sse, chat_chunk, usage_chunk
from tests.support.upstream import ScriptedUpstream


def relay(
    *,
    wants_usage: bool = False,
    choices: int = 1,
    tier: str | None = None,
    kind: type[ChunkRelay] = ChunkRelay,
) -> ChunkRelay:
    """A relay for a streamed chat call."""
    request = ModelRequest({}, "m", True, wants_usage, 1, choices, 100, 0, tier)
    return kind("t", request, Scrubber(()), 0.0, tier)


def event(value: Any) -> bytes:
    """As a target writes it."""
    return b"data: " + orjson.dumps(value) + b"\n\n"


def test_chunks_pass_as_they_are() -> None:
    """A whole event comes out as the very bytes, and content commits."""
    events = relay()
    role = event(chat_chunk("", role="assistant"))
    assert events.take(role, 1.0) == role
    assert not events.committed
    text = event(chat_chunk("a"))
    assert events.take(text, 1.0) == text
    assert events.committed


def test_several_events_in_one_piece() -> None:
    """Pieces with more or less than one event keep their content and order."""
    events = relay()
    whole = event(chat_chunk("a")) + event(chat_chunk("b"))
    assert events.take(whole[:30], 1.0) == b""
    assert events.take(whole[30:], 1.0) == whole


def test_usage_alone_is_kept_back() -> None:
    """The usage chunk is metered always and shown only to who asked."""
    chunk = event(usage_chunk(3, 4))
    for wants in (True, False):
        events = relay(wants_usage=wants)
        events.take(event(chat_chunk(role="assistant")), 1.0)
        assert events.take(chunk, 1.0) == (chunk if wants else b"")
        events.take(b"data: [DONE]\n\n", 1.0)
        assert (events.usage.prompt, events.usage.completion) == (3, 4)


def test_done_ends_it() -> None:
    """Nothing after [DONE] is shown."""
    events = relay()
    events.take(event(chat_chunk("a")), 1.0)
    assert events.take(b"data: [DONE]\n\n" + event(chat_chunk("late")), 1.0) == b"data: [DONE]\n\n"
    assert events.complete


def test_done_alone_is_no_answer() -> None:
    """Nor is usage before it: nothing was said, so another target may say it."""
    for before in (b"", event(usage_chunk(2, 0))):
        events = relay()
        with pytest.raises(StreamInterrupted):
            events.take(before + b"data: [DONE]\n\n", 1.0)
        assert not events.done


def test_early_end() -> None:
    """Without [DONE] each choice needs a finish reason; then [DONE] is added."""
    events = relay(choices=2)
    events.take(event(chat_chunk(finish="stop")), 1.0)
    with pytest.raises(StreamInterrupted):
        events.end(1.0)
    events.take(event(chat_chunk(finish="stop")), 1.0)
    assert events.end(1.0) == b"data: [DONE]\n\n"


def test_error_events_are_raised() -> None:
    """An error object is classified; an error member that is null is none."""
    with pytest.raises(UpstreamThrottled):
        relay().take(event({"error": {"message": "x", "code": "rate_limit_exceeded"}}), 1.0)
    fine = event({**chat_chunk("a"), "error": None})
    assert relay().take(fine, 1.0) == fine


_DEEP = b'data: {"choices":[],"x":' + b"[" * 300 + b"]" * 300 + b"}\n\n"


@pytest.mark.parametrize(
    "data", [b"data: nonsense\n\n", b"data: [1]\n\n", b'data: {"error"}\n\n', _DEEP]
)
def test_malformed_events(data: bytes) -> None:
    """What is no JSON object, or one that clients cannot read, never reaches one."""
    with pytest.raises(UpstreamFailed):
        relay().take(data, 1.0)


def test_comments_and_tier() -> None:
    """A comment becomes our sign of life; a tier is put into each chunk that has none."""
    assert relay().take(b": WORKING\n\n", 1.0) == HEARTBEAT
    shown = relay(tier="flex").take(event(chat_chunk("a")), 1.0)
    assert orjson.loads(shown[6:])["service_tier"] == "flex"


@pytest.mark.parametrize(
    "broken",
    [
        b"data: {not json}\n\n",
        b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n',
        b'data: {"choices":"abc"}\n\n',
        b'data: {"choices":[{"delta":5}]}\n\n',
        b'event: error\ndata: {"message":"m"}\n\n',
        b"event: error\ndata: it broke\n\n",
    ],
)
@pytest.mark.parametrize("cut", [1000, 5])
def test_a_broken_event_is_never_shown(broken: bytes, cut: int) -> None:
    """What is no chunk ends the stream as the target's failure."""
    events = relay()
    events.take(event(chat_chunk("a")), 1.0)
    with pytest.raises(UpstreamFailed):
        [events.take(broken[at : at + cut], 1.0) for at in range(0, len(broken), cut)]


def test_an_endless_event_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure says what is wrong with it."""
    monkeypatch.setattr(sse, "LONGEST_EVENT", 10)
    with pytest.raises(UpstreamFailed, match="an event of more than 16777216 bytes"):
        relay().take(b"data: " + b"x" * 20, 1.0)


@pytest.mark.parametrize(
    "broken",
    [
        b"data: {not json}\n\n",
        b'data: {"choices":"abc"}\n\n',
        b'event: error\ndata: {"message":"m"}\n\n',
    ],
)
def test_a_broken_event_ends_the_stream(upstream: ScriptedUpstream, broken: bytes) -> None:
    """After content: one error event, nothing behind it, no [DONE], and no success on record."""
    upstream.enqueue(Sse([chat_chunk("a"), chat_chunk("b"), broken, chat_chunk("c")], pause=0.1))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        events = gateway.chat(stream=True).text.split("\n\n")[:-1]
        assert ["content" in shown for shown in events] == [True, True, False]
        assert "error" in orjson.loads(events[-1].removeprefix("data: "))
        assert gateway.settled(1)[0].outcome.status is CallStatus.FAILED


def test_azures_verdict_on_the_prompt_goes_along_with_the_first_choice() -> None:
    """No chunk without choices reaches a client that reads ``choices[0]``; nothing is lost."""
    events = relay()
    verdict = [{"prompt_index": 0, "content_filter_results": {"hate": {"filtered": False}}}]
    early = {"choices": [], "created": 0, "id": "", "model": "", "prompt_filter_results": verdict}
    assert events.take(event(early), 1.0) == b""
    first = orjson.loads(events.take(event(chat_chunk("a")), 1.0)[6:])
    assert first == {**chat_chunk("a"), "prompt_filter_results": verdict}
    second = event(chat_chunk("b"))
    assert events.take(second, 1.0) == second


def test_a_remark_without_delta_gets_an_empty_one() -> None:
    """Azure's later verdicts on the content have no delta; clients read one."""
    events = relay()
    remark = {"index": 0, "finish_reason": None, "content_filter_offsets": {"check_offset": 44}}
    shown = orjson.loads(events.take(event({"choices": [remark]}), 1.0)[6:])
    assert shown == {"choices": [{**remark, "delta": {}}]}
    assert not events.committed
    plain = event({"choices": [{"index": 0, "text": "a"}]})
    assert events.take(plain, 1.0) == plain


def test_an_error_object_among_the_chunks_is_a_failure() -> None:
    """Some servers write it bare, without the member ``error``: it must not look like a chunk."""
    with pytest.raises(UpstreamThrottled):
        relay().take(event({"object": "error", "message": "full", "code": 503}), 1.0)


def test_what_came_before_a_failure_in_the_same_piece_is_kept() -> None:
    """The target's last words reach the client."""
    events = relay()
    words = event(chat_chunk("a"))
    with pytest.raises(UpstreamFailed):
        events.take(words + event({"error": {"message": "gone"}}), 1.0)
    assert events.unshown == words


def test_a_character_in_two_events() -> None:
    """Each half passes as it came; with a tier put in both are still there."""
    halves = [event(chat_chunk("HALF")).replace(b"HALF", half) for half in (rb"\ud83d", rb"\ude42")]
    events = relay()
    assert [events.take(half, 1.0) for half in halves] == halves
    assert events.usage.completion == 2
    events = relay(tier="default")
    for half, text in zip(halves, ("\ud83d", "\ude42"), strict=True):
        shown = json.loads(events.take(half, 1.0).removeprefix(b"data: "))
        assert shown["choices"][0]["delta"]["content"] == text
        assert shown["service_tier"] == "default"


def test_texts_like_one_before_pass() -> None:
    """They are counted once; everything else is left to a closer look."""
    events = relay()
    text = event(chat_chunk("a"))
    assert not events.plain(text)
    events.take(text, 1.0)
    texts = events.plain(event(chat_chunk("bc")) * 2)
    assert list(texts) == [2, 2]
    events.passed(texts, 2.0)
    assert not events.plain(event(chat_chunk("", finish="stop")))
    assert not events.plain(event(chat_chunk("b" * LARGE)))
    events.take(event(chat_chunk("", finish="stop")), 3.0)
    assert events.usage.completion == 3


TEXTS = st.text(st.sampled_from('ab "\\\n{}:,\x1fé漢😀'), max_size=9)
CHUNKS = st.one_of(
    TEXTS.map(chat_chunk),
    TEXTS.map(lambda text: {**chat_chunk(text), "id": "another"}),
    TEXTS.map(lambda text: chat_chunk(text, tool_calls=[{"index": 0, "function": {}}])),
    st.sampled_from([chat_chunk("a", logprobs={"content": []}), chat_chunk(role="assistant")]),
)
#: Bytes in each piece; below 1: so many whole events more than one.
PIECES = st.lists(st.integers(1, 400) | st.integers(-2, 0), min_size=1, max_size=30)


class _Reader(ChunkRelay):
    """Never takes the short way."""

    def plain(self, piece: bytes) -> Sequence[int]:
        del piece
        return ()


@given(st.lists(CHUNKS, max_size=12), PIECES, st.sampled_from([b"\n", b"\r\n"]))
def test_the_short_way_changes_nothing(chunks: list[Any], sizes: list[int], eol: bytes) -> None:
    """Texts that pass unread give the bytes, tokens and times that they give when they are read."""
    events = [*map(event, chunks), event(chat_chunk(finish="stop"))]
    rest = b"".join(events).replace(b"\n", eol)
    short, long = relay(), relay(kind=_Reader)
    now = 0.0
    for size in itertools.cycle(sizes):
        now += 0.01
        ends = [end.end() for end in re.finditer(2 * eol, rest)]
        piece = rest[: size if size > 0 else ends[min(-size, len(ends) - 1)] if ends else None]
        rest = rest[len(piece) :]
        if texts := short.plain(piece):
            short.passed(texts, now)
        assert (piece if texts else short.take(piece, now)) == long.take(piece, now)
        if not rest:
            break
    assert (short.usage, short.timing, short.complete) == (long.usage, long.timing, True)
