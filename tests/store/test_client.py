"""The connection: the product's errors, reconnecting, and no reply for the wrong caller."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from gateway.core.errors import ConfigError, StoreFull, StoreUnavailable
from gateway.store.client import StoreClient, connect
from gateway.store.embedded import EmbeddedServer
from tests.support.valkey import server_in


async def test_an_absent_server_is_unavailable(tmp_path: Path) -> None:
    """Nobody listens: the caller learns it as StoreUnavailable, with a time to come back."""
    client = connect(f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(StoreUnavailable) as refused:
        await client.execute_command("PING")
    assert refused.value.retry_after > 0
    await client.aclose()


async def test_a_silent_server_is_unavailable(tmp_path: Path) -> None:
    """A server that accepts and never answers costs the time limit, not for ever."""

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_unix_server(hear, tmp_path / "mute.sock")
    client = connect(f"unix://{tmp_path}/mute.sock", timeout=0.1)
    async with server, asyncio.timeout(5):
        with pytest.raises(StoreUnavailable):
            await client.execute_command("PING")
        await client.aclose()


async def test_a_cancellation_stays_one_whatever_the_library_makes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled while it connects, a command ends as cancelled and not as another outage."""
    waiting = asyncio.Event()

    async def deaf(*_: object, **__: object) -> None:
        waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise RedisConnectionError("refused") from None

    monkeypatch.setattr(Redis, "execute_command", deaf)
    command = asyncio.create_task(connect(f"unix://{tmp_path}/none").execute_command("PING"))
    await waiting.wait()
    command.cancel()
    with pytest.raises(asyncio.CancelledError):
        await command


async def test_full_memory_is_its_own_error(store: StoreClient) -> None:
    """A write that the server refuses for lack of memory is StoreFull."""
    await store.execute_command("CONFIG", "SET", "maxmemory", "1mb")
    try:
        with pytest.raises(StoreFull):
            await store.execute_command("SET", "k", b"x" * 1000)
    finally:
        await store.execute_command("CONFIG", "SET", "maxmemory", "512mb")


async def test_a_cancelled_command_leaves_no_reply_behind(valkey_server: EmbeddedServer) -> None:
    """The reply to a command that nobody waits for any more is never given to the next one."""
    client = connect(valkey_server.url)
    other = connect(valkey_server.url)
    await other.execute_command("DEL", "never")
    for round_ in range(5):
        waiting = asyncio.create_task(client.execute_command("BLPOP", "never", "2"))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        await other.execute_command("RPUSH", "never", "late")
        echoed = await asyncio.gather(
            *(client.execute_command("ECHO", f"{round_}-{n}") for n in range(4))
        )
        assert [text.decode() for text in echoed] == [f"{round_}-{n}" for n in range(4)]
        await other.execute_command("DEL", "never")
    await client.aclose()
    await other.aclose()


@pytest.mark.parametrize("option", ["", "?max_connections=2"])
async def test_many_commands_at_once_wait_for_their_turn(
    valkey_server: EmbeddedServer, option: str
) -> None:
    """Far more than there are connections, beside one that blocks: none of them fails."""
    client = connect(valkey_server.url + option, timeout=60)
    await client.execute_command("DEL", "never", "count")
    blocked = asyncio.create_task(client.execute_command("BLPOP", "never", "50"))
    await asyncio.gather(*(client.execute_command("INCR", "count") for _ in range(2000)))
    assert await client.execute_command("GET", "count") == b"2000"
    assert not blocked.done()
    found = await client.execute_command("INFO", "clients")
    assert int(found["connected_clients"]) < 110
    await client.execute_command("RPUSH", "never", "end")
    assert await blocked
    await client.aclose()


async def test_a_turn_that_does_not_come_is_an_outage(valkey_server: EmbeddedServer) -> None:
    """A command does not wait for ever behind others, and leaves its place in the row."""
    client = connect(valkey_server.url)
    client.wait_seconds = 0.1
    blocked = [
        asyncio.create_task(client.execute_command("BLPOP", "never", "0.5")) for _ in range(64)
    ]
    await asyncio.sleep(0.05)
    with pytest.raises(StoreUnavailable):
        await client.execute_command("PING")
    await asyncio.gather(*blocked)
    assert await client.execute_command("PING")
    await client.aclose()


async def test_a_client_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    """QUE-08 in small: the same client object works again as soon as the server does."""
    server = server_in(tmp_path)
    server.start()
    client = connect(server.url)
    await client.execute_command("SET", "k", "v")
    server.stop()
    with pytest.raises(StoreUnavailable):
        await client.execute_command("GET", "k")
    server.start()
    try:
        assert await client.execute_command("GET", "k") == b"v"
    finally:
        await client.aclose()
        server.stop()


def test_a_url_with_an_unreadable_option_is_refused() -> None:
    """Before anything connects, by the name of the setting."""
    with pytest.raises(ConfigError, match="HEADWAY_REDIS_URL"):
        connect("redis://127.0.0.1:1?health_check_interval=often")
