"""Both kinds of relay do what a stream needs of them."""

import threading
from collections.abc import Callable
from typing import Any, cast

import orjson
import pytest

from gateway.api.relay import HEARTBEAT, Relay, end, take
from gateway.core.errors import StreamInterrupted, UpstreamFailed
from gateway.core.large_json import LARGE
from tests.api.test_chunk_relay import event, relay
from tests.api.test_response_relay import chat_relay, native_relay
from tests.support.gateway import running_gateway
from tests.support.scripts import Sse, chat_chunk, usage_chunk
from tests.support.upstream import ScriptedUpstream

CROWD = orjson.dumps({**chat_chunk("x"), "x": [{"a": 1}] * 100_001})


@pytest.mark.parametrize("make", [relay, chat_relay])
def test_either(make: Callable[[], Relay]) -> None:
    """Comments are signs of life, content commits, an end too early raises, usage is counted."""
    stream = make()
    assert stream.take(b": ping\n\n", 1.0) == HEARTBEAT
    assert not stream.done
    assert b"hello" in stream.take(event(chat_chunk("hello")), 1.0)
    assert stream.committed
    with pytest.raises(StreamInterrupted):
        stream.end(2.0)
    assert stream.usage.estimated
    stream.take(event(chat_chunk(finish="stop")), 2.0)
    stream.take(event(usage_chunk(5, 1)), 2.0)
    stream.end(3.0)
    assert (stream.usage.prompt, stream.usage.estimated) == (5, False)
    assert stream.timing.ttft_s == 1.0


@pytest.mark.parametrize("make", [relay, chat_relay, native_relay])
def test_an_event_of_too_many_parts_is_a_failure(make: Callable[[], Relay]) -> None:
    """Reading it would hold up everybody; so it is when its data comes in several lines."""
    for data in (CROWD, CROWD.replace(b',"x"', b',\ndata: "x"')):
        with pytest.raises(UpstreamFailed, match="objects and arrays"):
            make().take(b"data: " + data + b"\n\n", 1.0)


@pytest.mark.parametrize("make", [relay, chat_relay])
async def test_a_large_event_is_taken_beside_the_loop(make: Callable[[], Relay]) -> None:
    """The pieces that may complete it, and its end; small ones on the loop."""
    here, stream, threads = threading.get_ident(), make(), list[bool]()

    class Noted:
        """The relay, telling where it works."""

        def __getattr__(self, name: str) -> Any:
            if name in {"take", "end"}:
                return self._work(getattr(stream, name))
            return getattr(stream, name)

        def _work(self, method: Callable[..., bytes]) -> Callable[..., bytes]:
            def noted(*given: Any) -> bytes:
                threads.append(threading.get_ident() != here)
                return method(*given)

            return noted

    noted = cast("Relay", Noted())
    large = event(chat_chunk("x" * 2 * LARGE, finish="stop"))
    for piece in (event(chat_chunk("a")), large[:LARGE], large[LARGE:-2]):
        await take(noted, piece, lambda: 1.0)
    assert b"x" * 2 * LARGE in await end(noted, lambda: 2.0)
    assert threads == [False, False, True, True]


def test_a_crowded_event_ends_its_own_stream_alone(upstream: ScriptedUpstream) -> None:
    """With an error, not with what it held."""
    upstream.enqueue(Sse([chat_chunk("a"), b"data: " + CROWD + b"\n\n"], pause=0.02))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        got = gateway.chat(stream=True)
        assert "objects and arrays" in got.text
        assert "[DONE]" not in got.text
        assert gateway.chat(stream=True).text.rstrip().endswith("[DONE]")
