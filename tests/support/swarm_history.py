"""What the dispatchers of a swarm sent and were told, and what may not be true then."""

import struct
import time
from collections import Counter
from collections.abc import Iterable
from random import Random

from gateway.core.usage import Usage
from gateway.core.work import Committed, Lease, PartRef, RowOutcome
from tests.support.segments import held

Row = tuple[str, int]
_FIGURES = ("requests", "failed", "prompt", "completion", "cached", "reasoning")


class SwarmHistory:
    """Every attempt has usage of its own, so the meter tells which attempt was counted."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.published: set[str] = set()
        self._attempts: list[tuple[Row, RowOutcome]] = []
        self._delivered: dict[str, list[RowOutcome]] = {}
        self._acknowledged: set[Row] = set()
        self._sent: Counter[Row] = Counter()
        self._held: dict[Row, tuple[str, float]] = {}

    def wrong(self, text: str) -> None:
        """Note a violation."""
        self.violations.append(text)

    def progress(self) -> int:
        """A number that grows while anything gets done."""
        return len(self._acknowledged) + len(self.published)

    def acknowledged_of(self, name: str) -> int:
        """Rows of a segment whose commit was answered."""
        return sum(segment == name for segment, _ in self._acknowledged)

    def outcome(self, row: Row, chance: Random) -> RowOutcome:
        """A new result of ``row``; its part number is the number of the attempt."""
        prompt, completion, cached, reasoning = (chance.randint(0, 1000) for _ in range(4))
        usage = Usage(prompt, completion, cached, reasoning)
        ref = PartRef(len(self._attempts), row[1], 1)
        outcome = RowOutcome(row[1], ref, usage, chance.random() < 0.9)
        self._attempts.append((row, outcome))
        return outcome

    def before_lease(self) -> tuple[float, set[Row]]:
        """When a lease is asked for, and what is known to be done by then."""
        return time.monotonic(), set(self._acknowledged)

    def leased(self, lease: Lease, before: tuple[float, set[Row]]) -> None:
        """A lease came: none of its rows may be done or in another living lease."""
        asked, done = before
        now = time.monotonic()
        for row in held(lease):
            if row in done:
                self.wrong(f"{row} was handed out after it was done")
            if row in self._held and self._held[row][1] > now:
                self.wrong(f"{row} is in two living leases")
            self._held[row] = (lease.id, asked + lease.ttl_ms / 1000)

    def extended(self, lease: Lease, asked: float, *, alive: bool) -> None:
        """A lease was kept or is gone."""
        for row in held(lease):
            if alive and self._held.get(row, ("", 0.0))[0] == lease.id:
                self._held[row] = (lease.id, asked + lease.ttl_ms / 1000)

    def given_back(self, rows: Iterable[Row]) -> None:
        """Rows are no longer wanted."""
        for row in rows:
            self._held.pop(row, None)

    def committing(self, rows: list[Row]) -> dict[Row, float]:
        """Rows are sent. Those nobody else has sent, and until when they are surely ours."""
        safe = {r: self._held[r][1] for r in rows if r in self._held and not self._sent[r]}
        self._sent.update(rows)
        for row in rows:
            self._held.pop(row, None)
        return safe

    def committed(self, rows: list[Row], answer: Committed, safe: dict[Row, float]) -> None:
        """A commit was answered: a living lease is never too late."""
        if not answer.closed:
            self._acknowledged.update(rows)
            return
        now = time.monotonic()
        for row, until in safe.items():
            if now < until and self._sent[row] == 1:
                self.wrong(f"{row} was refused while its lease lived")

    def read(self, name: str, rows: int, bits: tuple[bytes, bytes, bytes], *, whole: bool) -> None:
        """The results of a closed segment, as its final files would be written from them."""
        done, refs, good = bits
        found: list[RowOutcome] = []
        for index in range(rows):
            row = (name, index)
            if not _bit(done, index):
                if whole or row in self._acknowledged:
                    self.wrong(f"{row} has no result")
                continue
            part, _, _ = struct.unpack("<IQI", refs[16 * index : 16 * index + 16].ljust(16, b"\0"))
            sent, outcome = self._attempts[part]
            if sent != row or outcome.ok != _bit(good, index):
                self.wrong(f"{row} points at the result of {sent}")
            found.append(outcome)
        self._delivered[name] = found

    def bill(self, names: Iterable[str]) -> dict[str, int]:
        """What the meter must show for these segments."""
        results = [outcome for name in names for outcome in self._delivered[name]]
        usages = [outcome.usage for outcome in results]
        sums = (
            len(results),
            sum(not outcome.ok for outcome in results),
            sum(usage.prompt for usage in usages),
            sum(usage.completion for usage in usages),
            sum(usage.cached for usage in usages),
            sum(usage.reasoning for usage in usages),
        )
        return dict(zip(_FIGURES, sums, strict=True))


def _bit(bits: bytes, index: int) -> bool:
    return index // 8 < len(bits) and bool(bits[index // 8] & (0x80 >> index % 8))
