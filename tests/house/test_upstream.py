"""The scripted upstream keeps its own promises."""

import asyncio
import json

import httpx
import pytest

from tests.support.scripts import Sse, chat_chunk, error, hang_up, never, usage_chunk
from tests.support.upstream import ScriptedUpstream

CALL = {"model": "m", "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 4}


def test_default_answers_are_deterministic(upstream: ScriptedUpstream) -> None:
    """Two equal calls get the same text and usage, over one connection."""
    with httpx.Client(base_url=upstream.url) as client:
        first = client.post("/chat/completions", json=CALL).json()
        again = client.post("/chat/completions", json=CALL).json()
    assert first == again
    assert first["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert [seen.reused for seen in upstream.requests] == [False, True]
    assert upstream.usage() == (6, 8)


def test_streamed_text_equals_plain_text(upstream: ScriptedUpstream) -> None:
    """A stream adds up to the plain answer and ends with the usage asked for."""
    body = {**CALL, "stream": True, "stream_options": {"include_usage": True}}
    with httpx.Client(base_url=upstream.url) as client:
        plain = client.post("/chat/completions", json=CALL).json()
        lines = client.post("/chat/completions", json=body).text.split("\n\n")
    assert lines[-2] == "data: [DONE]"
    events = [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]
    text = "".join(c["delta"].get("content", "") for e in events for c in e["choices"])
    assert text == plain["choices"][0]["message"]["content"]
    assert events[-1]["usage"] == plain["usage"]
    assert all(event["usage"] is None for event in events[:-1])


def test_embeddings_and_prompt_arrays(upstream: ScriptedUpstream) -> None:
    """Each input gets its own row."""
    with httpx.Client(base_url=upstream.url) as client:
        vectors = client.post("/embeddings", json={"model": "e", "input": ["a b", "c"]}).json()
        texts = client.post("/completions", json={"model": "m", "prompt": ["a", "b"]}).json()
    assert [row["index"] for row in vectors["data"]] == [0, 1]
    assert vectors["usage"]["prompt_tokens"] == 3
    assert [choice["index"] for choice in texts["choices"]] == [0, 1]


def test_scripts_come_in_order_then_rules(upstream: ScriptedUpstream) -> None:
    """The queue is served first, then the first rule that still matches, then the default."""
    upstream.enqueue(error(429, headers={"retry-after": "3"}))
    upstream.on("three", error(503), times=1)
    with httpx.Client(base_url=upstream.url) as client:
        got = [client.post("/chat/completions", json=CALL) for _ in range(3)]
    assert [answer.status_code for answer in got] == [429, 503, 200]
    assert got[0].headers["retry-after"] == "3"


@pytest.mark.parametrize("cut", ["event", "all", 1, 7])
def test_a_stream_may_be_cut_anywhere(upstream: ScriptedUpstream, cut: str | int) -> None:
    """Write boundaries do not change the bytes."""
    events = [b": hello\r\n\r\n", chat_chunk("日本"), usage_chunk(1, 1)]
    upstream.enqueue(Sse(events, cut=cut, eol="\r\n", space=False))  # type: ignore[arg-type]
    with httpx.Client(base_url=upstream.url) as client:
        answer = client.post("/chat/completions", json=CALL)
    assert answer.content.startswith(b": hello\r\n\r\ndata:{")
    assert answer.content.endswith(b"data:[DONE]\r\n\r\n")
    assert "日本" in answer.text


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_stream_may_break(upstream: ScriptedUpstream, end: str) -> None:
    """The caller sees the connection end in mid body."""
    upstream.enqueue(Sse([chat_chunk("a")], end=end))  # type: ignore[arg-type]
    with (
        httpx.Client(base_url=upstream.url) as client,
        pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)),
    ):
        client.post("/chat/completions", json=CALL)


def test_refused_hung_up_and_back(upstream: ScriptedUpstream) -> None:
    """Closing without a byte, refusing connections, and listening again on the same port."""
    upstream.enqueue(hang_up())
    with httpx.Client(base_url=upstream.url) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            client.post("/chat/completions", json=CALL)
        upstream.refuse()
        with pytest.raises(httpx.ConnectError):
            client.post("/chat/completions", json=CALL)
        upstream.start()
        assert client.post("/chat/completions", json=CALL).status_code == 200


async def test_the_peers_leaving_is_logged(upstream: ScriptedUpstream) -> None:
    """A caller that gives up is seen at once, and its place is free."""
    upstream.enqueue(never())
    async with httpx.AsyncClient(base_url=upstream.url) as client:
        call = asyncio.create_task(client.post("/chat/completions", json=CALL))
        await upstream.until(lambda: upstream.running == 1)
        call.cancel()
        await upstream.until(lambda: upstream.requests[0].peer_closed_at)
        await upstream.until(lambda: upstream.running == 0)
    assert not upstream.requests[0].completed


async def test_idle_connections_can_be_closed(upstream: ScriptedUpstream) -> None:
    """With ``idle_close`` a second call needs a new connection."""
    upstream.idle_close = 0.05
    upstream.limit(2)
    async with httpx.AsyncClient(base_url=upstream.url) as client:
        await client.post("/chat/completions", json=CALL)
        await upstream.until(lambda: not upstream.open_connections)
        await client.post("/chat/completions", json=CALL)
    assert [seen.connection for seen in upstream.requests] == [1, 2]
