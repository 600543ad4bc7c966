"""What an operator set by hand, on disk: Redis may lose it, and then it is set again.

``jobs/<batch>/control.json`` of a batch, ``control/<name>.json`` of a tenant or of a whole queue.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from gateway.core.errors import NotFound
from gateway.store.batch_disk import JOBS, job_file
from gateway.store.blobs import BlobStore
from gateway.store.control import Pause, Scope

_FOLDER = "control/"


@dataclass(frozen=True, slots=True)
class Control:
    """Of a batch; None is what was never set."""

    paused: bool | None = None
    priority: int | None = None


class Controls:
    """Reads and writes these files; each is durable when a call returns."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    async def note_batch(self, batch_id: str, **changed: bool | int) -> None:
        """Keep ``paused`` or ``priority`` of a batch."""
        name = job_file(batch_id, "control.json")
        await self._blobs.put(name, orjson.dumps(await self._read(name) | changed))

    async def of_batch(self, batch_id: str) -> Control:
        """What was set of a batch."""
        return Control(**await self._read(job_file(batch_id, "control.json")))

    async def paused_batches(self) -> list[str]:
        """Batches that are paused by themselves and have not ended."""
        names = [name for name in await self._blobs.list(JOBS) if name.endswith("/")]
        ids = [name[len(JOBS) : -1] for name in names]
        return [batch_id for batch_id in ids if (await self.of_batch(batch_id)).paused]

    async def note_pause(self, scope: Scope, shards: Sequence[str], *, paused: bool) -> None:
        """Keep whether a tenant or everything is paused; the latest word of a scope counts."""
        digest = hashlib.sha256(scope.name.encode()).hexdigest()[:32]
        said = {"kind": scope.kind, "name": scope.name, "shards": [*shards], "paused": paused}
        await self._blobs.put(f"{_FOLDER}{scope.kind}-{digest}.json", orjson.dumps(said))

    async def pauses(self) -> list[Pause]:
        """Of every scope the latest word."""
        found = [await self._read(name) for name in await self._blobs.list(_FOLDER)]
        return [
            Pause(Scope(said["kind"], said["name"]), tuple(said["shards"]), said["paused"])
            for said in found
        ]

    async def _read(self, name: str) -> dict[str, Any]:
        try:
            said: dict[str, Any] = orjson.loads(await self._blobs.read(name))
        except NotFound:
            return {}
        return said
