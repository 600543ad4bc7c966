"""What the disk says of a batch, in ``jobs/<id>/``: enough to bring it back when Redis lost it.

``manifest.json`` facts, ``plan.json`` the state at the end of validation, ``cancel`` when a cancel
was accepted, ``finalizing`` when its files were begun, ``state.json`` the final state.
"""

from typing import Any

import orjson

from gateway.core.errors import NotFound
from gateway.schemas.batch import BatchStatus
from gateway.store.batch_record import BatchFacts, BatchRecord, Change, first_fields
from gateway.store.billed import Billed, ended_segments
from gateway.store.blobs import LocalBlobs
from gateway.store.rebuild import EndedSegment

JOBS = "jobs/"
_BILLED = "batches"


class BatchDisk:
    """Reads and writes these files; each is written whole and is durable when a call returns."""

    def __init__(self, blobs: LocalBlobs) -> None:
        self._blobs = blobs
        self._billed = Billed(blobs)

    async def ids(self) -> list[str]:
        """Every batch that has a folder."""
        names = await self._blobs.list(JOBS)
        return [name[len(JOBS) : -1] for name in names if name.endswith("/")]

    async def save_facts(self, facts: BatchFacts) -> None:
        """Write the manifest: from here on the batch exists."""
        await self._blobs.put(job_file(facts.id, "manifest.json"), facts.to_json())

    async def facts(self, batch_id: str) -> BatchFacts | None:
        """The manifest; None when there is no such batch."""
        try:
            text = await self._blobs.read(job_file(batch_id, "manifest.json"))
        except NotFound:
            return None
        return BatchFacts.from_json(text)

    async def save_plan(self, batch_id: str, plan: Change) -> None:
        """Keep what validation found."""
        await self._blobs.put(job_file(batch_id, "plan.json"), orjson.dumps(plan.to_fields()))

    async def save_cancel(self, batch_id: str, at: int) -> None:
        """Keep that a cancel was accepted at ``at``."""
        await self._blobs.put(job_file(batch_id, "cancel"), str(at).encode())

    async def finalizing_at(self, batch_id: str, now: int) -> int:
        """When the files of the batch were begun: ``now``, unless that was noted before."""
        name = job_file(batch_id, "finalizing")
        try:
            return int(await self._blobs.read(name))
        except NotFound:
            await self._blobs.put(name, str(now).encode())
        return now

    async def save_final(self, batch_id: str, fields: dict[str, str]) -> None:
        """Keep the final state."""
        await self._blobs.put(job_file(batch_id, "state.json"), orjson.dumps(fields))

    async def is_final(self, batch_id: str) -> bool:
        """Whether the final state is there."""
        return await self._blobs.size(job_file(batch_id, "state.json")) is not None

    async def final(self, batch_id: str) -> dict[str, str]:
        """The final state in its flat form; empty while the batch has not ended."""
        return await self._fields(batch_id, "state.json")

    async def fields(self, batch_id: str) -> dict[str, str]:
        """The latest state the disk knows of, in its flat form; empty for no such batch."""
        if final := await self.final(batch_id):
            return final
        facts = await self.facts(batch_id)
        if facts is None:
            return {}
        fields = first_fields(facts)
        if plan := await self._fields(batch_id, "plan.json"):
            fields |= plan | {"status": str(BatchStatus.IN_PROGRESS)}
        return fields | await self._cancel(batch_id)

    async def forget(self, record: BatchRecord, epoch: str | None) -> None:
        """Delete the folder; what the batch had delivered is noted before."""
        await self._billed.note(_BILLED, epoch, list(ended_segments(record)))
        await self._blobs.delete(job_file(record.id, ""))

    async def forgotten(self, epoch: str | None) -> list[EndedSegment]:
        """What forgotten batches had delivered and the meter of ``epoch`` may lack."""
        names = await self._billed.names(_BILLED)
        return [ended for name in names for ended in await self._billed.lost(name, epoch)]

    async def _cancel(self, batch_id: str) -> dict[str, str]:
        try:
            at = (await self._blobs.read(job_file(batch_id, "cancel"))).decode()
        except NotFound:
            return {}
        return {"status": str(BatchStatus.CANCELLING), "cancelling_at": at}

    async def _fields(self, batch_id: str, name: str) -> dict[str, str]:
        try:
            content: Any = orjson.loads(await self._blobs.read(job_file(batch_id, name)))
        except NotFound:
            return {}
        return {str(name): str(text) for name, text in content.items()}


def job_file(batch_id: str, rest: str) -> str:
    """Blob name of a file of a batch."""
    return f"{JOBS}{batch_id}/{rest}"


def is_batch_id(text: str) -> bool:
    """Whether ``text`` has the form of the id of a batch."""
    return text.startswith("batch_") and text[6:].isalnum() and text.isascii()
