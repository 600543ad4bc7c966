"""Rows of leased runs, read from the input file by the index of their segment."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson

from gateway.batches.lines import custom_id_in
from gateway.batches.ordering import ROW
from gateway.core.errors import InvalidRequest
from gateway.core.exact_json import dumps, with_long_integers
from gateway.core.work import LeasedRun
from gateway.schemas.job import PARSERS
from gateway.store.batches import index_name, input_name, job_of
from gateway.store.blobs import BlobStore
from gateway.store.job_files import is_job, job_blob

_CACHED_BYTES = 64 * 2**20
_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One request. ``index`` is its place in the segment; ``body`` is its JSON as UTF-8.

    ``tokens`` is the estimate of its prompt and answer. ``fault`` says why its line cannot be used;
    then nothing but ``index`` is sure to be there. ``refusal`` is what its endpoint says to it.
    """

    index: int
    custom_id: str
    method: str
    url: str
    body: bytes
    tokens: int = 1
    fault: str | None = None
    refusal: InvalidRequest | None = None

    @property
    def prompt_tokens(self) -> int:
        """An estimate from the size of the body."""
        return len(self.body) // _BYTES_PER_TOKEN + 1


class RowSource:
    """Reads rows; remembers the indexes of the segments used last, up to 64 MiB of them."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._indexes: OrderedDict[str, bytes] = OrderedDict()

    async def read(self, run: LeasedRun) -> list[BatchRow]:
        """The rows of ``run``, in its order. Raises NotFound when the files are gone."""
        indices = [row.index for row in run.rows]
        return await self._rows(run.input_ref, run.index_ref, indices)

    async def custom_ids(self, segment: str, indices: Sequence[int]) -> dict[int, str]:
        """The ids of rows that are not in a lease, such as dead ones."""
        rows = await self._rows(*_refs_of(segment), indices)
        return {row.index: row.custom_id for row in rows}

    async def _rows(self, source: str, index: str, indices: Sequence[int]) -> list[BatchRow]:
        if source == index:
            return await self._job(source, indices)
        table = await self._index(index)
        places = [ROW.unpack_from(table, place * ROW.size) for place in indices]
        lines = await self._blobs.read_ranges(source, [place[:2] for place in places])
        tokens = [place[2] for place in places]
        return await asyncio.to_thread(_parsed, indices, lines, tokens)

    async def _job(self, name: str, indices: Sequence[int]) -> list[BatchRow]:
        """Of a blob that holds index and line together; it is read once and not remembered.

        The call was checked when the job was made.
        """
        blob = await self._blobs.read(name)
        places = [ROW.unpack_from(blob, place * ROW.size) for place in indices]
        lines = [blob[at : at + length] for at, length, *_ in places]
        return [
            _row(index, line, place[2])
            for index, line, place in zip(indices, lines, places, strict=True)
        ]

    async def _index(self, name: str) -> bytes:
        if name not in self._indexes:
            self._indexes[name] = await self._blobs.read(name)
            while sum(map(len, self._indexes.values())) > _CACHED_BYTES and len(self._indexes) > 1:
                self._indexes.popitem(last=False)
        self._indexes.move_to_end(name)
        return self._indexes[name]


def _refs_of(segment: str) -> tuple[str, str]:
    job = job_of(segment)
    if is_job(job):
        return job_blob(job), job_blob(job)
    return input_name(job), index_name(segment)


def _parsed(
    indices: Sequence[int], lines: Sequence[bytes], tokens: Sequence[int]
) -> list[BatchRow]:
    return [_checked(_row(*place)) for place in zip(indices, lines, tokens, strict=True)]


def _checked(row: BatchRow) -> BatchRow:
    """``row`` as its endpoint takes it: with its ``refusal`` when it does not."""
    parse = None if row.fault is not None else PARSERS.get(row.url)
    if parse is not None:
        try:
            parse(row.body)
        except InvalidRequest as refusal:
            return replace(row, refusal=refusal)
    return row


def _row(index: int, line: bytes, tokens: int) -> BatchRow:
    """The row on ``line``. A line that cannot be used is the fault of its own row alone."""
    try:
        request = with_long_integers(line, orjson.loads(line))
        body = dumps(request["body"])
        named = request["custom_id"], request["method"], request["url"]
        return BatchRow(index, *named, body, tokens)
    except orjson.JSONEncodeError:
        fault = "The line is nested too deeply."
    except (orjson.JSONDecodeError, LookupError, TypeError):
        fault = "The line is not a request."
    return BatchRow(index, custom_id_in(line), "", "", b"", fault=fault)
