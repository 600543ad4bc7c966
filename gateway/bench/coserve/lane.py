"""The offline lane of one engine: asks the dispatcher's pacer what may run, as the dispatcher does.

It knows nothing of time or transport, so that the same lane runs in virtual time and over HTTP.
"""

from collections.abc import Sequence
from typing import Protocol

from gateway.bench.coserve.rows import Backlog, Row
from gateway.core.clock import Clock
from gateway.core.load import TargetLoad
from gateway.pacing.window import MOST_TAKEN_BACK, Pacer


class Port(Protocol):
    """Where rows run."""

    def start(self, row: Row) -> None:
        """Send a row; the lane is told of its first token and its end."""

    def stop(self, row: Row) -> None:
        """Cancel a row that has no token yet; the lane is told nothing more of it."""


class OfflineLane:
    """Starts rows of ``backlog`` at ``port`` whenever ``pacer`` has a place."""

    def __init__(self, backlog: Backlog, pacer: Pacer, port: Port, clock: Clock) -> None:
        self._backlog = backlog
        self._pacer = pacer
        self._port = port
        self._clock = clock
        self.running: set[Row] = set()
        self.prefilling: dict[Row, int] = {}
        self.taken_back = 0
        self._tokens = 0

    def window(self) -> int:
        """Rows that may be in flight now."""
        return self._pacer.window()

    def start_ready(self) -> None:
        """Start what may start now."""
        while self._pacer.places(len(self.running), len(self.prefilling), self._tokens):
            row = self._backlog.take()
            if row is None:
                return
            row.started = self._clock.monotonic()
            self.running.add(row)
            self.prefilling[row] = row.prompt
            self._tokens += row.prompt
            self._pacer.started()
            self._port.start(row)

    def first_token(self, row: Row) -> None:
        """The prompt of ``row`` is read."""
        if self._prefilled(row):
            row.first_at = self._clock.monotonic()
            waited = row.first_at - row.started
            self._pacer.first_token(waited, row.prompt, len(self.running))

    def ended(self, row: Row) -> None:
        """``row`` is done."""
        self._prefilled(row)
        self.running.discard(row)
        now = self._clock.monotonic()
        gap = (now - row.first_at) / (row.output - 1) if row.output > 1 else None
        self._pacer.ended(now - row.started, gap)

    def lost(self, rows: Sequence[Row]) -> None:
        """The engine lost rows: they are sent again, before all others."""
        for row in reversed(rows):
            self._prefilled(row)
            self.running.discard(row)
            self._backlog.give_back(row)
            row.taken_back -= 1

    def hear(self, before: TargetLoad, now: TargetLoad) -> None:
        """What was said of interactive calls here before, and what is said now."""
        self._pacer.heard(now)
        if now.calls > before.calls or now.prefilling > before.prefilling:
            self.make_way()

    def make_way(self) -> None:
        """An interactive call came: rows without a token may have to wait behind it."""
        now = self._clock.monotonic()
        for ahead, (row, tokens) in reversed(list(enumerate(self.prefilling.items()))):
            if row.taken_back >= MOST_TAKEN_BACK:
                continue
            if self._pacer.makes_way(now - row.started, tokens, ahead):
                self.taken_back += 1
                self._prefilled(row)
                self.running.discard(row)
                self._port.stop(row)
                self._backlog.give_back(row)

    def _prefilled(self, row: Row) -> int:
        tokens = self.prefilling.pop(row, 0)
        self._tokens -= tokens
        return tokens
