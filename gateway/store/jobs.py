"""Jobs: one blob on disk first, record in Redis, final state on disk again.

Redis has a hash per job that has not ended, or ended minutes ago, and a sorted set per tenant for
listing. All else is read from disk, so many ended jobs cost no memory. Whatever Redis loses is
put back from disk.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import orjson

from gateway.core.errors import NotFound, StoreFull, StoreUnavailable
from gateway.core.work import PartRef, RowOutcome
from gateway.schemas.job import JobStatus
from gateway.store.billed import Billed, ended_job
from gateway.store.blobs import LocalBlobs
from gateway.store.job_commands import IdempotencyClaim, JobCommands
from gateway.store.job_files import (
    ROOT,
    end_blob,
    facts_in,
    folder_of,
    is_job_id,
    job_blob,
    packed_job,
    part_blob,
)
from gateway.store.job_record import JobEnd, JobFacts, JobRecord, first_fields
from gateway.store.part_notes import NOTE_BYTES, split
from gateway.store.rebuild import EndedSegment
from gateway.store.room import PLENTY, RECORD_BYTES, Room

LISTING = "singles"
REMEMBERED_SECONDS = 600
_KEY_PREFIX = "\0job "
_BILLED = "jobs-"
_MOST_LISTED = 100_000
_TRIMMED_EVERY = 512


@dataclass(slots=True)
class FoundJob:
    """What there is of a job beside its blob: its end, and parts with its result line."""

    ended: bool = False
    parts: list[int] = field(default_factory=list)


class JobStore:
    """All jobs. ``commands`` are those of the listing LISTING.

    Raises StoreUnavailable when Redis does not answer.
    """

    def __init__(self, commands: JobCommands, blobs: LocalBlobs, room: Room = PLENTY) -> None:
        self._commands = commands
        self._blobs = blobs
        self._billed = Billed(blobs)
        self._room = room
        self._made = 0

    async def held_key(self, tenant: str, key: str) -> IdempotencyClaim | None:
        """The claim that holds an idempotency key now. Batches have keys of their own."""
        return await self._commands.held_key(tenant, own_key(key))

    async def claim_key(self, tenant: str, key: str, claim: IdempotencyClaim) -> IdempotencyClaim:
        """The claim that holds an idempotency key for 24 h: ``claim`` or an earlier one."""
        return await self._commands.claim_key(tenant, own_key(key), claim)

    async def create(self, facts: JobFacts, line: bytes) -> JobRecord:
        """Write a job: blob, then record. Doing it again is harmless.

        Without room (StoreFull) nothing of it stays. Once its blob is on disk it exists: Redis may
        be away, then the record is put back as if it was lost.
        """
        await self._room.take(len(line) + RECORD_BYTES)
        await self._commands.ping()
        await self._blobs.put(job_blob(facts.id), packed_job(line, facts.tokens, facts.to_json()))
        try:
            with suppress(StoreUnavailable):
                await self._list(facts)
        except StoreFull:
            await self.remove(JobRecord(facts))
            raise
        return JobRecord(facts)

    async def get(self, tenant: str, job_id: str) -> JobRecord:
        """The record. Raises NotFound for unknown and foreign ids."""
        record = await self.load(job_id) if is_job_id(job_id) else None
        if record is None or record.facts.tenant != tenant:
            raise NotFound(f"No such Job object: {job_id[:64]}", param="id")
        return record

    async def load(self, job_id: str) -> JobRecord | None:
        """The record as Redis has it; if it has none, as the disk has it."""
        live = await self.live(job_id)
        return live or await self.durable(job_id) or await self._planned(job_id)

    async def live(self, job_id: str) -> JobRecord | None:
        """The record as Redis has it; None when it has none."""
        fields = await self._commands.fields(job_id)
        return JobRecord.from_fields(fields) if fields else None

    async def durable(self, job_id: str) -> JobRecord | None:
        """The final state on disk; None while the job has not ended."""
        try:
            fields: dict[str, str] = orjson.loads(await self._blobs.read(end_blob(job_id)))
        except NotFound:
            return None
        planned = await self._planned(job_id)
        return None if planned is None else JobRecord(planned.facts, JobEnd.from_fields(fields))

    async def page(
        self, tenant: str, limit: int, after: str | None
    ) -> tuple[list[JobRecord], bool]:
        """Newest first, and whether more follow; of very many the newest 100,000."""
        ids = await self._commands.page(tenant, limit + 1, after)
        records = await asyncio.gather(*map(self.load, ids[:limit]))
        return [record for record in records if record is not None], len(ids) > limit

    async def end(self, job_id: str, end: JobEnd) -> JobStatus | None:
        """End the job unless it has ended; the state before, None when there is no such job.

        It was ended by this call exactly when the answer is QUEUED. A record that Redis has lost
        is put back first, unless the job has ended.
        """
        before = await self._move(job_id, end)
        if not before and await self.put_back(job_id) is not None:
            before = await self._move(job_id, end)
        return JobStatus(before) if before else None

    async def save(self, job_id: str, end: JobEnd) -> None:
        """Make a final state durable, and let Redis forget the job after a while."""
        await self._blobs.put(end_blob(job_id), orjson.dumps(_fields(end)))
        await self._commands.expire(job_id, REMEMBERED_SECONDS)

    async def restore_end(self, job_id: str, end: JobEnd) -> None:
        """Have Redis say of a job that has ended what the disk says."""
        await self._commands.set_fields(job_id, _fields(end))
        await self._commands.expire(job_id, REMEMBERED_SECONDS)

    async def line(self, record: JobRecord) -> bytes:
        """The result line. Raises NotFound when there is none."""
        ref = None if record.end is None else record.end.ref
        if ref is None:
            raise NotFound("The job has no result.", param="id", code="job_has_no_result")
        name = part_blob(record.id, ref.part)
        return (await self._blobs.read_ranges(name, [(ref.offset, ref.length)]))[0]

    async def remove(self, record: JobRecord) -> None:
        """Forget a job that has ended, its bill apart.

        The blob goes first: without it nothing is put back.
        """
        if (ended := await self.ended(record)) is not None:
            await self._note(folder_of(record.id), [ended])
        names = [job_blob(record.id), end_blob(record.id)]
        if record.end is not None and record.end.ref is not None:
            names.append(part_blob(record.id, record.end.ref.part))
        for name in names:
            await self._blobs.delete(name)
        await self._commands.remove(record.id, record.facts.tenant)

    async def put_back(self, job_id: str) -> JobFacts | None:
        """Restore the record of a job that has not ended; None when it has, or is gone."""
        record = await self.durable(job_id) or await self._planned(job_id)
        if record is None:
            return None
        facts = record.facts
        if facts.key is not None:
            claim = IdempotencyClaim(job_id, facts.digest)
            await self._commands.restore_key(facts.tenant, facts.key, claim, facts.created_at)
        await self._commands.show(job_id, facts.tenant)
        if record.end is not None:
            return None
        await self._commands.add(job_id, facts.tenant, first_fields(facts))
        return facts

    async def epoch(self) -> str | None:
        """Names what Redis holds of jobs; None when it lost everything."""
        return await self._commands.epoch()

    async def begin_epoch(self) -> str:
        """Announce that all is about to be put back."""
        return await self._commands.begin_epoch()

    async def end_epoch(self, epoch: str) -> bool:
        """All is put back. False: Redis lost everything once more meanwhile."""
        return await self._commands.end_epoch(epoch)

    async def server(self) -> str:
        """Names the Redis process."""
        return await self._commands.server()

    async def folders(self) -> list[str]:
        """The folders that hold jobs, oldest first."""
        return await self._blobs.list(ROOT)

    async def ids_in(self, folder: str) -> dict[str, FoundJob]:
        """The jobs in a folder."""
        names = [name.removeprefix(folder) for name in await self._blobs.list(folder)]
        jobs = {i: FoundJob() for i in _stems(names, ".job") if is_job_id(i)}
        for name in names:
            job_id, _, kind = name.partition(".")
            if job_id in jobs and kind == "end":
                jobs[job_id].ended = True
            elif job_id in jobs and kind.isdecimal():
                jobs[job_id].parts.append(int(kind))
        return jobs

    async def result(self, job_id: str, parts: Sequence[int]) -> tuple[str, RowOutcome] | None:
        """The hour of the bill and the result that the first whole one of ``parts`` holds."""
        for part in sorted(parts):
            found = split(await self._blobs.read(part_blob(job_id, part)))
            if found is not None:
                note, line = found
                ref = PartRef(part, NOTE_BYTES, len(line))
                return note.hour, RowOutcome(note.index, ref, note.usage, note.ok)
        return None

    async def ended(self, record: JobRecord) -> EndedSegment | None:
        """What an ended job has delivered; None when that is nothing, or is gone."""
        if record.end is None or record.end.ref is None:
            return None
        try:
            result = await self.result(record.id, [record.end.ref.part])
        except NotFound:
            return None
        return None if result is None else ended_job(record.facts, *result)

    async def removed(self) -> AsyncIterator[EndedSegment]:
        """What jobs had delivered that were removed before Redis lost everything."""
        epoch = await self.epoch()
        for name in await self._billed.names(_BILLED):
            for ended in await self._billed.lost(name, epoch):
                yield ended

    async def remove_folder(self, folder: str) -> None:
        """Delete every job in a folder. Their ids stay in the listing and are not shown."""
        jobs = [job_id for job_id, found in (await self.ids_in(folder)).items() if found.ended]
        records = [await self.durable(job_id) for job_id in jobs]
        work = [await self.ended(record) for record in records if record is not None]
        await self._note(folder, [ended for ended in work if ended is not None])
        await self._blobs.delete(folder)

    async def _note(self, folder: str, work: Sequence[EndedSegment]) -> None:
        name = _BILLED + folder.removeprefix(ROOT).rstrip("/")
        await self._billed.note(name, await self.epoch(), work)

    async def _move(self, job_id: str, end: JobEnd) -> str:
        allowed, fields = (JobStatus.QUEUED,), end.to_fields()
        return await self._commands.move(job_id, allowed, end.status, fields)

    async def _list(self, facts: JobFacts) -> None:
        await self._commands.add(facts.id, facts.tenant, first_fields(facts))
        self._made += 1
        if self._made % _TRIMMED_EVERY == 0:
            await self._commands.trim(facts.tenant, _MOST_LISTED)

    async def _planned(self, job_id: str) -> JobRecord | None:
        try:
            blob = await self._blobs.read(job_blob(job_id))
        except NotFound:
            return None
        return JobRecord(JobFacts.from_json(facts_in(blob)))


def own_key(key: str) -> str:
    """An idempotency key that no batch has."""
    return _KEY_PREFIX + key


def _fields(end: JobEnd) -> dict[str, str]:
    return {"status": str(end.status), **end.to_fields()}


def _stems(names: Iterable[str], suffix: str) -> Iterator[str]:
    return (name.removesuffix(suffix) for name in names if name.endswith(suffix))
