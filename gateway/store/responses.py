"""Stored responses: one blob each, by tenant, until their time is over.

``response/<folder>/<id>.json``; the folder follows from the time in the id, as with jobs.
"""

import asyncio
import re
from dataclasses import dataclass, fields
from typing import Any

import orjson

from gateway.core.clock import Clock
from gateway.core.errors import NotFound
from gateway.core.exact_json import dumps, readable, with_long_integers
from gateway.core.ids import new_ordered_id
from gateway.store.blobs import BlobStore
from gateway.store.room import PLENTY, RECORD_BYTES, Room

ROOT = "response/"
_PREFIX = "resp_"
_ID = re.compile(r"resp_[0-9a-f]{24}")
_TIME = slice(len(_PREFIX), len(_PREFIX) + 12)
_FOLDER = slice(len(_PREFIX), len(_PREFIX) + 7)
_FOLDER_BITS = 20


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response, the input items that it answers, and what it goes on from.

    ``job`` makes it if it is a background one; then ``response`` is as it was when that began.
    """

    tenant: str
    response: dict[str, Any]
    input: list[dict[str, Any]]
    previous: str | None = None
    job: str | None = None

    @property
    def id(self) -> str:
        """The response's id."""
        return str(self.response["id"])


class ResponseStore:
    """Keeps responses for ``seconds``."""

    def __init__(self, blobs: BlobStore, clock: Clock, seconds: float, room: Room = PLENTY) -> None:
        self._blobs = blobs
        self._clock = clock
        self._seconds = seconds
        self._room = room

    async def make_room(self, size: int) -> None:
        """Before work begins whose result is to be kept: raises StoreFull when it could not be."""
        await self._room.take(size + RECORD_BYTES)

    async def put(self, stored: StoredResponse) -> None:
        """Keep it; one of that id is replaced. Raises StoreFull when there is no room at all.

        One that a job makes is as durable as its job. Callers wait for the others: those outlive
        this process, and a loss of power as the file system sees fit.
        """
        data = await asyncio.to_thread(_written, stored)
        await self._blobs.put(_blob(stored.id), data, sync=stored.job is not None)

    async def get(self, tenant: str, response_id: str) -> StoredResponse:
        """Raises NotFound for unknown, foreign and expired ids."""
        if _ID.fullmatch(response_id) and not self._expired(response_id):
            try:
                data = await self._blobs.read(_blob(response_id))
                found = await asyncio.to_thread(_read, data)
            except NotFound:
                found = None
            if found is not None and found.tenant == tenant:
                return found
        raise response_not_found(response_id)

    async def delete(self, response_id: str) -> None:
        """Forget it."""
        await self._blobs.delete(_blob(response_id))

    async def sweep(self) -> int:
        """Remove what has expired; returns how many folders."""
        limit = self._clock.now() - self._seconds
        gone = [name for name in await self._blobs.list(ROOT) if _ended_at(name) < limit]
        for folder in gone:
            await self._blobs.delete(folder)
        return len(gone)

    def _expired(self, response_id: str) -> bool:
        made = int(response_id[_TIME], 16) / 1000
        return made + self._seconds <= self._clock.now()


def new_response_id(now: float) -> str:
    """A fresh id; ``now`` in Unix seconds."""
    return new_ordered_id(_PREFIX[:-1], int(now * 1000))


def id_of_job(job_id: str) -> str:
    """The id of the response that a job makes."""
    return _PREFIX + job_id.partition("_")[2]


def response_not_found(response_id: str) -> NotFound:
    """The same answer for all that is not there."""
    return NotFound(f"Response with id '{response_id[:64]}' not found.", param="response_id")


def _written(stored: StoredResponse) -> bytes:
    """As it is kept; orjson reads the members where they are, nothing is copied."""
    try:
        return orjson.dumps(stored)
    except orjson.JSONEncodeError:
        members = {field.name: getattr(stored, field.name) for field in fields(stored)}
        return dumps({**members, "response": readable(stored.response)})


def _read(data: bytes) -> StoredResponse:
    return StoredResponse(**with_long_integers(data, orjson.loads(data)))


def _blob(response_id: str) -> str:
    return f"{ROOT}{response_id[_FOLDER]}/{response_id}.json"


def _ended_at(folder: str) -> float:
    """The Unix time from which no new response goes into ``folder``."""
    return ((int(folder[len(ROOT) : -1], 16) + 1) << _FOLDER_BITS) / 1000
