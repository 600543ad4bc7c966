"""Calls leave nothing for the garbage collector: what they held is free when they end."""

import asyncio
import json
import time

import pytest

from tests.soak.faults import FAULTS
from tests.support.cycles import left_over
from tests.support.gateway import KEY, RunningGateway, chat_body, running_gateway
from tests.support.scripts import Script
from tests.support.upstream import ScriptedUpstream

_TARGET = {
    "timeouts": {"first_byte": "300ms", "idle": "300ms", "total": "5s"},
    "retry": {"attempts": 2, "base": "1ms", "cap": "2ms"},
}


@pytest.mark.parametrize("script", FAULTS.values(), ids=FAULTS)
def test_failed_calls(upstream: ScriptedUpstream, script: Script) -> None:
    """However a target fails, neither its error nor what that passed through stays."""
    upstream.on(lambda _: True, script)
    for stream in (True, False):
        with running_gateway({"up": {"base_url": upstream.url, **_TARGET}}) as gateway:
            with left_over() as found:
                gateway.chat(stream=stream)
                gateway.settled(1)
                _rest()
            assert found == []


def test_refused_calls(upstream: ScriptedUpstream) -> None:
    """A target that is not there."""
    upstream.refuse()
    with running_gateway({"up": {"base_url": upstream.url, **_TARGET}}) as gateway:
        with left_over() as found:
            gateway.chat()
            gateway.settled(1)
            _rest()
        assert found == []


@pytest.mark.parametrize("leaves", [False, True])
def test_watched_calls(upstream: ScriptedUpstream, *, leaves: bool) -> None:
    """A call that lasts long enough to be watched, to its end or until its client leaves."""
    upstream.pace.first = 0.2
    for stream in (True, False):
        with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
            with left_over() as found:
                asyncio.run(_call(gateway, 0.1 if leaves else 5, stream=stream))
                gateway.settled(1)
                _rest()
            assert found == []


async def _call(gateway: RunningGateway, seconds: float, *, stream: bool) -> None:
    body = json.dumps(chat_body(stream=stream)).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        f"authorization: Bearer {KEY}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    port = int(gateway.root.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(seconds):
            writer.write(head.encode() + body)
            await reader.read()
    except TimeoutError:
        pass
    finally:
        writer.close()


def _rest() -> None:
    """What was cancelled or closed comes to its end."""
    time.sleep(0.2)
