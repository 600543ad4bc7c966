"""A real Valkey for tests: one server per session, emptied before each test."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gateway.core.settings import Settings
from gateway.store.client import StoreClient, connect
from gateway.store.embedded import EmbeddedServer


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """The server of the session."""
    directory = tmp_path_factory.mktemp("valkey")
    server = EmbeddedServer(directory, Settings(data_dir=directory))
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def store(valkey_server: EmbeddedServer) -> AsyncIterator[StoreClient]:
    """A client of an empty server."""
    client = connect(valkey_server.url)
    await client.execute_command("FLUSHALL")
    yield client
    await client.aclose()


@pytest.fixture
async def store_url(valkey_server: EmbeddedServer, store: StoreClient) -> str:
    """URL of an empty server, for processes of their own."""
    return valkey_server.url


async def somebody_listens(store: StoreClient, channel: str) -> None:
    """Wait until the server knows of a listener, who then hears all that is said."""
    async with asyncio.timeout(10):
        while not (await store.execute_command("PUBSUB", "NUMSUB", channel))[1]:  # noqa: ASYNC110 - a state elsewhere
            await asyncio.sleep(0.01)


def server_in(directory: Path) -> EmbeddedServer:
    """A server of the test's own, not started yet."""
    return EmbeddedServer(directory, Settings(data_dir=directory))
