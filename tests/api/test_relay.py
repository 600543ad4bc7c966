"""Both kinds of relay do what a stream needs of them."""

from collections.abc import Callable

import pytest

from gateway.api.relay import HEARTBEAT, Relay
from gateway.core.errors import StreamInterrupted
from tests.api.test_chunk_relay import event, relay
from tests.api.test_response_relay import chat_relay
from tests.support.scripts import chat_chunk, usage_chunk


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
