"""What tests of this folder share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.store.client import StoreClient
from tests.support.batch_provider import BatchProvider
from tests.support.carriers import MADE, fine, number
from tests.support.rig import Rig


@pytest.fixture
async def provider() -> AsyncIterator[BatchProvider]:
    """A running provider; the connections of every carrier end with the test."""
    server = BatchProvider().start()
    server.answer = number
    yield server
    while MADE:
        await MADE.pop().aclose()
    server.stop()


@pytest.fixture
def rig(tmp_path: Path, store: StoreClient) -> Rig:
    """A dispatcher with one direct target."""
    return Rig(tmp_path, store, fine)
