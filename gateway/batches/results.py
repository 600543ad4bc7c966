"""Finished lines of a batch while it runs, each row once, for readers that come and go.

Where a line is read changes under way: from the part files by the queue's references, after the
end of its segment from the segment's files, after the end of the batch from its output and error
file. What a reader has is known by row, so none of that shows.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from gateway.batches.cursor import Cursor, RowSet
from gateway.batches.table import KINDS, lengths, lengths_range, refs, refs_range
from gateway.core.clock import Clock
from gateway.core.errors import Draining, NotFound, Unavailable
from gateway.core.work import PartRef
from gateway.schemas.results import ResultsRequest, with_cursor
from gateway.store.batch_record import BatchRecord, PlannedSegment
from gateway.store.batches import BatchStore, lines_name, table_name
from gateway.store.blobs import BlobStore
from gateway.store.files import FileStore, data_name
from gateway.store.keys import shard_of
from gateway.store.parts import part_name
from gateway.store.queue import QueueClient

_AT_ONCE = 32
_MOST_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Waiting:
    """Seconds between looks, and between signs of life; ``stopping`` ends followers."""

    poll: float = 0.25
    keep_alive: float = 5.0
    stopping: Callable[[], bool] = lambda: False


class ResultReader:
    """Opens streams of results. Nothing is kept between two of them."""

    def __init__(
        self,
        batches: BatchStore,
        files: FileStore,
        blobs: BlobStore,
        queue: QueueClient,
        clock: Clock,
        waiting: Waiting | None = None,
    ) -> None:
        self._batches = batches
        self._files = files
        self._blobs = blobs
        self._queue = queue
        self._clock = clock
        self._waiting = waiting or Waiting()

    async def open(
        self, tenant: str, batch_id: str, wanted: ResultsRequest
    ) -> AsyncIterator[bytes]:
        """The lines behind the cursor, in pieces of whole lines.

        Raises NotFound for an unknown batch or one whose files are gone, InvalidRequest for a
        cursor that is not of this batch.
        """
        record = await self._batches.get(tenant, batch_id)
        cursor = Cursor.from_text(batch_id, wanted.after)
        if record.ended:
            await self._check_files(record)
        return self._lines(batch_id, cursor, wanted)

    async def _check_files(self, record: BatchRecord) -> None:
        """Raises NotFound when a file of the batch is gone."""
        for file_id in (record.output_file_id, record.error_file_id):
            if file_id is not None:
                await self._files.get(record.facts.tenant, file_id)

    async def _lines(
        self, batch_id: str, cursor: Cursor, wanted: ResultsRequest
    ) -> AsyncIterator[bytes]:
        """Breaks off with an error when it cannot be whole; a clean end of a followed one is."""
        left, spoken = wanted.limit, self._clock.monotonic()
        while True:
            try:
                record = await self._load(batch_id)
                async for lines in self._available(record, cursor, left):
                    yield b"".join(lines)
                    spoken = self._clock.monotonic()
                    left = None if left is None else left - len(lines)
                if not wanted.follow or left == 0 or _is_whole(record, cursor):
                    return
            except Unavailable:
                if not wanted.follow:
                    raise
            if self._waiting.stopping():
                raise Draining("The gateway is shutting down.")
            if self._clock.monotonic() - spoken >= self._waiting.keep_alive:
                yield b"\n"
                spoken = self._clock.monotonic()
            await self._clock.sleep(self._waiting.poll)

    async def _load(self, batch_id: str) -> BatchRecord | None:
        """The record; None while Redis has lost it. Raises NotFound when the batch is purged."""
        record = await self._batches.load(batch_id)
        if record is None and not await self._batches.is_on_disk(batch_id):
            raise NotFound("The batch is gone.", param="batch_id")
        return record

    async def _available(
        self, record: BatchRecord | None, cursor: Cursor, most: int | None
    ) -> AsyncIterator[list[bytes]]:
        """What can be had now, ``most`` lines at most; moves the cursor."""
        if record is None:
            return
        for place in range(len(record.segments)):
            try:
                async for rows, lines in self._of_segment(record, place, cursor, most):
                    sent = []
                    for row, line in zip(rows, lines, strict=False):
                        cursor.rows(place).add(row)
                        sent.append(with_cursor(line, cursor.to_text()))
                    most = None if most is None else most - len(sent)
                    yield sent
            except NotFound:
                # moved on meanwhile, to where the next look finds it; an end does not move
                if record.ended:
                    raise

    async def _of_segment(
        self, record: BatchRecord, place: int, cursor: Cursor, most: int | None
    ) -> AsyncIterator[tuple[Sequence[int], Sequence[bytes]]]:
        """Rows that the cursor lacks and the lines of the first of them, piece by piece."""
        source, rows = self._source(record, place), cursor.rows(place)
        while most != 0:
            at_once = _AT_ONCE if most is None else min(most, _AT_ONCE)
            chosen = _chosen(rows, await source.fresh(rows), at_once)
            if not chosen:
                return
            lines = await self._read(source, chosen)
            most = None if most is None else most - len(lines)
            yield chosen, lines

    async def _read(self, source: "_Source", rows: Sequence[int]) -> list[bytes]:
        """The lines of the first rows, those that fit into one piece."""
        found: list[bytes] = []
        left = _MOST_BYTES
        wanted: list[tuple[str, tuple[int, int]]] = []
        for name, ref in await source.refs(rows):
            left -= ref.length
            if left < 0 and wanted:
                break
            wanted.append((name, (ref.offset, ref.length)))
        for name, some in groupby(wanted, key=lambda place: place[0]):
            found += await self._blobs.read_ranges(name, [place for _, place in some])
        return found

    def _source(self, record: BatchRecord, place: int) -> "_Source":
        segment = record.segments[place]
        if record.ended or record.segment_end(segment.segment) is not None:
            return _Files(self._blobs, record, place)
        return _Parts(self._queue, record.id, segment)


class _Parts:
    """A segment that runs: what is committed, as the queue has it."""

    def __init__(self, queue: QueueClient, job: str, segment: PlannedSegment) -> None:
        self._queue = queue
        self._job = job
        self._segment = segment
        self._shard = shard_of(segment.model)

    async def fresh(self, rows: RowSet) -> Iterator[int]:
        """Rows that are done and not in ``rows``."""
        done = await self._queue.done(self._shard, self._segment.segment)
        known = min(self._segment.rows, 8 * len(done))
        return (row for start, end in rows.gaps(known) for row in _set_bits(done, start, end))

    async def refs(self, rows: Sequence[int]) -> list[tuple[str, PartRef]]:
        """Blob and place in it of each row's line."""
        found = refs(await self._queue.refs_of(self._shard, self._segment.segment, rows))
        if len(found) != len(rows):
            raise NotFound("The segment is closed.")
        return [(part_name(self._job, ref.part), ref) for ref in found]


class _Files:
    """A segment that is closed: all its rows have a line in a file."""

    def __init__(self, blobs: BlobStore, record: BatchRecord, place: int) -> None:
        self._blobs = blobs
        self._record = record
        self._place = place
        self._bases: tuple[int, int] | None = None

    async def fresh(self, rows: RowSet) -> Iterator[int]:
        """All that are not in ``rows``."""
        total = self._record.segments[self._place].rows
        return (row for start, end in rows.gaps(total) for row in range(start, end))

    async def refs(self, rows: Sequence[int]) -> list[tuple[str, PartRef]]:
        """Blob and place in it of each row's line."""
        segment = self._record.segments[self._place].segment
        start = rows[0]
        where = refs_range(start, rows[-1] + 1)
        [packed] = await self._blobs.read_ranges(table_name(segment), [where])
        found = refs(packed)
        bases = await self._offsets()
        names = self._names(segment)
        return [
            (names[ref.part], PartRef(ref.part, bases[ref.part] + ref.offset, ref.length))
            for ref in (found[row - start] for row in rows)
        ]

    async def _offsets(self) -> tuple[int, int]:
        """Where this segment's lines begin in the files of the batch."""
        if self._bases is None:
            output = error = 0
            for segment in self._record.segments[: self._place] if self._record.ended else ():
                name = table_name(segment.segment)
                [packed] = await self._blobs.read_ranges(name, [lengths_range()])
                some = lengths(packed)
                output, error = output + some[0], error + some[1]
            self._bases = output, error
        return self._bases

    def _names(self, segment: str) -> tuple[str, str]:
        if not self._record.ended:
            return lines_name(segment, KINDS[0]), lines_name(segment, KINDS[1])
        tenant = self._record.facts.tenant
        ids = self._record.output_file_id, self._record.error_file_id
        return data_name(tenant, ids[0] or ""), data_name(tenant, ids[1] or "")


_Source = _Parts | _Files


def _chosen(rows: RowSet, fresh: Iterator[int], most: int) -> list[int]:
    """The next rows to send. Those that the cursor cannot hold yet wait for others."""
    trial = rows.copy()
    return list(islice((row for row in fresh if trial.add(row)), most))


def _set_bits(bits: bytes, start: int, end: int) -> Iterator[int]:
    for at in range(start // 8, (end + 7) // 8):
        if bits[at]:
            for row in range(max(start, 8 * at), min(end, 8 * at + 8)):
                if bits[at] & (0x80 >> (row & 7)):
                    yield row


def _is_whole(record: BatchRecord | None, cursor: Cursor) -> bool:
    return (
        record is not None
        and record.ended
        and all(len(cursor.rows(at)) >= s.rows for at, s in enumerate(record.segments))
    )
