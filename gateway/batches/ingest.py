"""Read the input file of one batch, check its lines, write one index per model.

``python -m gateway.batches.ingest`` takes an IngestRequest as JSON on standard input and prints a
summary as JSON. It runs at low priority, streams the file, keeps about 300 bytes per line, and
gives the same result each time it is run. It exits with FAULT_EXIT when it fails over the file,
and with another code when that cannot be read or the index not written.
"""

import os
import sys
import traceback
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from gateway.batches.ordering import (
    IndexRow,
    embedding_inputs,
    estimated_tokens,
    ordered,
    packed,
    prefix_hash,
)
from gateway.batches.validate import LineChecker, LineFault

MAX_ROWS = 50_000
MAX_ERRORS = 100
FAULT_EXIT = 65
_LONGEST_LINE = 32 * 2**20
_NICE = 10
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """``source`` is the input file, ``folder`` takes the index files; ``models`` may be used."""

    source: str
    folder: str
    endpoint: str
    models: tuple[str, ...]
    max_rows: int = MAX_ROWS

    def to_json(self) -> bytes:
        """For the child's standard input."""
        return orjson.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Planned:
    """One segment of a good file; ``index`` is a file name in the job's folder."""

    model: str
    rows: int
    index: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What was found. With errors there are no segments; ``errors`` has 100 entries at most."""

    rows: int
    segments: tuple[Planned, ...]
    errors: tuple[dict[str, Any], ...]

    def to_json(self) -> bytes:
        """For the child's standard output."""
        return orjson.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: bytes) -> "Summary":
        """Read what the child printed."""
        parsed = orjson.loads(text)
        segments = tuple(Planned(**segment) for segment in parsed["segments"])
        return cls(parsed["rows"], segments, tuple(parsed["errors"]))


def ingest(request: IngestRequest) -> Summary:
    """Check the file, and when every line is good write its index files. Raises OSError."""
    reading = _Reading(request)
    with Path(request.source).open("rb") as file:
        reading.read(file)
    errors = reading.errors()
    if errors:
        return Summary(reading.count, (), errors)
    return Summary(reading.count, tuple(_write(Path(request.folder), reading.rows)), ())


def lines(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """(number from 1, offset, bytes) of each line that is not blank, without surrounding blanks.

    Lines end at LF only. A line longer than 32 MiB comes as its first part.
    """
    number, offset = 0, 0
    while raw := file.readline(_LONGEST_LINE + 1):
        number += 1
        start, length = offset, len(raw)
        while len(raw) > _LONGEST_LINE and not raw.endswith(b"\n"):
            rest = file.readline(_LONGEST_LINE)
            length += len(rest)
            if not rest or rest.endswith(b"\n"):
                break
        offset += length
        if number == 1 and raw.startswith(_BOM):
            raw, start = raw[len(_BOM) :], start + len(_BOM)
        stripped = raw.lstrip(_BLANK)
        start += len(raw) - len(stripped)
        if stripped:
            yield number, start, stripped.rstrip(_BLANK)


class _Reading:
    """The rows of a file by model, and its faults."""

    def __init__(self, request: IngestRequest) -> None:
        self._max_rows = request.max_rows
        self._embeddings = request.endpoint.endswith("/embeddings")
        self._checker = LineChecker(request.endpoint, request.models)
        self._faults: list[dict[str, Any]] = []
        self._more = 0
        self.rows: dict[str, list[IndexRow]] = defaultdict(list)
        self.count = 0

    def read(self, file: BinaryIO) -> None:
        """Go through the file, to its end or to the first row too many."""
        inputs = 0
        for number, offset, raw in lines(file):
            self.count += 1
            if self.count > self._max_rows:
                self._too_many("requests")
                return
            try:
                inputs += self._row(number, offset, raw)
            except LineFault as fault:
                self._fault(fault, number)
            if inputs > self._max_rows:
                self._too_many("embedding inputs")
                return
        if not self.count:
            self._fault(LineFault("empty_file", "The input file has no requests."), None)

    def errors(self) -> tuple[dict[str, Any], ...]:
        """At most 100 entries; with more faults the last one counts the rest."""
        if not self._more:
            return tuple(self._faults)
        message = f"{self._more + 1} more faults were found and are not listed."
        rest = {"code": "more_errors", "line": None, "message": message, "param": None}
        return (*self._faults[:-1], rest)

    def _row(self, number: int, offset: int, raw: bytes) -> int:
        if len(raw) > _LONGEST_LINE:
            raise LineFault("invalid_request", f"A line has at most {_LONGEST_LINE} bytes.")
        line = self._checker.check(raw, number)
        prefix = 0 if self._embeddings else prefix_hash(line.body)
        row = IndexRow(offset, len(raw), estimated_tokens(line.body), prefix)
        self.rows[line.model].append(row)
        return embedding_inputs(line.body) if self._embeddings else 0

    def _too_many(self, what: str) -> None:
        message = f"The input file has more than {self._max_rows} {what}."
        self._faults.insert(0, LineFault("too_many_tasks", message).entry(None))
        del self._faults[MAX_ERRORS:]

    def _fault(self, fault: LineFault, line: int | None) -> None:
        if len(self._faults) < MAX_ERRORS:
            self._faults.append(fault.entry(line))
        else:
            self._more += 1


def _write(folder: Path, rows: dict[str, list[IndexRow]]) -> Iterator[Planned]:
    """Index files by order of first use of the model; each whole or not there."""
    for place, (model, found) in enumerate(rows.items()):
        name = f"index-{place}"
        temporary = folder / f"{name}.{os.getpid()}"
        with temporary.open("wb") as file:
            file.write(packed(ordered(found)))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(folder / name)
        yield Planned(model, len(found), name)


def main() -> None:
    """Entry of the child process."""
    os.nice(_NICE)
    given = orjson.loads(sys.stdin.buffer.read())
    request = IngestRequest(**{**given, "models": tuple(given["models"])})
    try:
        sys.stdout.buffer.write(ingest(request).to_json())
    except OSError:
        raise
    except Exception:  # noqa: BLE001 - told apart from a start that failed
        traceback.print_exc()
        sys.exit(FAULT_EXIT)


if __name__ == "__main__":
    main()
