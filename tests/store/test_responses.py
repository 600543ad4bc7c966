"""Stored responses: by tenant, and for a time."""

import tracemalloc
from pathlib import Path
from typing import Any

import orjson
import pytest

from gateway.core.errors import NotFound, StoreFull
from gateway.store.blobs import LocalBlobs
from gateway.store.responses import (
    ResponseStore,
    StoredResponse,
    id_of_job,
    new_response_id,
    response_not_found,
)
from gateway.store.room import DiskRoom
from tests.support.clock import ManualClock

DAY = 86_400.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> ResponseStore:
    return ResponseStore(LocalBlobs(tmp_path), clock, 30 * DAY)


def _stored(clock: ManualClock, tenant: str = "a") -> StoredResponse:
    response = {"id": new_response_id(clock.now()), "output": []}
    return StoredResponse(tenant, response, [{"type": "message"}], "resp_before", "job_1")


async def test_it_comes_back(store: ResponseStore, clock: ManualClock) -> None:
    """As it was, for its tenant alone, until it is deleted."""
    stored = _stored(clock)
    await store.put(stored)
    assert await store.get("a", stored.id) == stored
    with pytest.raises(NotFound):
        await store.get("b", stored.id)
    await store.delete(stored.id)
    with pytest.raises(NotFound):
        await store.get("a", stored.id)


@pytest.mark.parametrize(
    "name", ["", "resp_", "resp_../../x", "job_" + "0" * 24, "resp_" + "g" * 24]
)
async def test_names_that_were_never_given_out(store: ResponseStore, name: str) -> None:
    """Not found, whatever they look like."""
    with pytest.raises(NotFound):
        await store.get("a", name)


async def test_no_room(tmp_path: Path, clock: ManualClock) -> None:
    """It is said before the work, not after it: what was made is kept while there is a disk."""
    room = DiskRoom(tmp_path, clock, limit=10_000)
    store = ResponseStore(LocalBlobs(tmp_path), clock, DAY, room)
    await store.make_room(1000)
    with pytest.raises(StoreFull):
        await store.make_room(1000)
    stored = _stored(clock)
    await store.put(stored)
    assert await store.get("a", stored.id) == stored


async def test_expiry(store: ResponseStore, clock: ManualClock, tmp_path: Path) -> None:
    """Gone to the second for readers; the sweep frees the disk a little later."""
    stored = _stored(clock)
    await store.put(stored)
    clock.advance(30 * DAY - 1)
    assert (await store.get("a", stored.id)).id == stored.id
    assert await store.sweep() == 0
    clock.advance(1)
    with pytest.raises(NotFound):
        await store.get("a", stored.id)
    clock.advance(2000)
    assert await store.sweep() == 1
    assert not await LocalBlobs(tmp_path).list("response/")


def test_ids() -> None:
    """A job and its response share the number; an id that is shown is cut."""
    assert id_of_job("job_0123") == "resp_0123"
    assert len(response_not_found("x" * 500).message) < 120


async def test_many_items_are_not_copied(store: ResponseStore, clock: ManualClock) -> None:
    """Keeping a response takes the memory of its text, not that of its items again."""
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}
        for _ in range(20_000)
    ]
    stored = StoredResponse("a", {"id": new_response_id(clock.now()), "output": []}, items)
    tracemalloc.start()
    try:
        await store.put(stored)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(orjson.dumps(items))
    finally:
        tracemalloc.stop()
    assert await store.get("a", stored.id) == stored


async def test_what_json_hardly_holds(store: ResponseStore, clock: ManualClock) -> None:
    """Long integers stay; of half a character the sign for a lost one."""
    response = {"id": new_response_id(clock.now()), "output": [{"text": "\ud83d\ude42 \ud83d"}]}
    stored = StoredResponse("a", response, [{"type": "x", "n": 10**25}])
    await store.put(stored)
    got = await store.get("a", stored.id)
    assert got.input == stored.input
    assert got.response["output"] == [{"text": "🙂 \ufffd"}]
