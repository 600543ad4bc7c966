"""Which sequences take part in the next step. No torch, no time of its own.

Without interactive work: read new prompts, several at once, and decode every running row. With it:
an interactive prompt is read first, in a step with interactive rows alone; afterwards offline rows
and prompts fill what the step-time target leaves, in turns. A row that is left out is paused: it
keeps its slot and its cache. A slot is refilled in the very next step. When interactive sequences
need more slots than there are, the newest batch row gives its own up and is computed again later.

Sequences without a priority are all equal: first come, first served.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from gateway.worker.pages import pages_for
from gateway.worker.sequence import Sequence, State
from gateway.worker.step_time import StepTime, Work

_UNSAID = 50
_WHOLE_PROMPTS = 2048
_ALONE_CHUNKS = 4
_LEAST_CHUNK = 16
# Times the step of the interactive rows alone: on a slow machine no target starves offline work.
_LEAST_TARGET = 1.6


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Rows that decode one token, by slot, and (sequence, prompt tokens to read)."""

    decodes: tuple[Sequence, ...]
    prompts: tuple[tuple[Sequence, int], ...]

    @property
    def work(self) -> Work:
        """What the step costs."""
        tokens = sum(count for _, count in self.prompts)
        return Work(len(self.decodes), sum(row.length for row in self.decodes), tokens)

    @property
    def members(self) -> tuple[Sequence, ...]:
        """Everybody who takes part."""
        return (*self.decodes, *(sequence for sequence, _ in self.prompts))

    def __bool__(self) -> bool:
        return bool(self.decodes or self.prompts)


class Scheduler:
    """Owner of slots and queues.

    Sequences that are said to be offline may not use the first ``reserved`` slots, all others may
    use any. ``room`` are the pages of the cache: a sequence gets its slot when all its tokens will
    fit. None: slots come with their memory.
    """

    def __init__(
        self,
        rows: int,
        reserved: int,
        *,
        itl_target: float,
        prefill_chunk: int,
        times: StepTime | None = None,
        room: int | None = None,
    ) -> None:
        self._itl_target = itl_target
        self._chunk = prefill_chunk
        self._reserved = reserved
        self._kept = list(range(reserved))
        self._open = list(range(reserved, rows))
        self._waiting: list[Sequence] = []
        self._active: list[Sequence] = []
        self._room: float = math.inf if room is None else room
        self._turn = 0
        self._arrivals = 0
        self.times = times or StepTime()

    @property
    def waiting(self) -> int:
        """Sequences without a slot."""
        return len(self._waiting)

    @property
    def active(self) -> int:
        """Sequences with a slot."""
        return len(self._active)

    def add(self, sequence: Sequence) -> None:
        """Take a new sequence; among equal priorities the first come is served first."""
        self._arrivals += 1
        sequence.arrival = self._arrivals
        self._wait(sequence)

    def remove(self, sequence: Sequence) -> None:
        """The sequence has ended or its reader has left; its slot is free at once."""
        if sequence.state is State.WAITING and sequence in self._waiting:
            self._waiting.remove(sequence)
        elif sequence in self._active:
            self._give_up_slot(sequence)
        sequence.state = State.DONE

    def plan(self) -> StepPlan:
        """The next step; empty when there is nothing to do."""
        self._make_room()
        self._admit(self._waiting)
        reading, running = self._by_state()
        urgent = [s for s in reading if s.interactive]
        if urgent:
            return self._urgent([s for s in running if s.interactive], urgent)
        if any(s.interactive for s in running):
            return self._beside_interactive(running, reading)
        return _plan(running, _take(reading, _ALONE_CHUNKS * self._chunk))

    def plan_urgent(self, busy: Collection[Sequence], *, decode: bool) -> StepPlan:
        """A step of interactive sequences alone, to be run inside the step of those in ``busy``.

        Prompts first; without any, and if ``decode``, the running rows.
        """
        self._admit([s for s in self._waiting if s.interactive])
        reading, running = self._by_state()
        rows = [s for s in running if s.interactive and s not in busy]
        urgent = [s for s in reading if s.interactive and s not in busy]
        if urgent:
            return self._urgent(rows, urgent)
        return _plan(rows if decode else [], [])

    def _by_state(self) -> tuple[list[Sequence], list[Sequence]]:
        """Sequences whose prompt is being read, soonest first, and those that decode."""
        reading = [s for s in self._active if s.state is State.PREFILL]
        reading.sort(key=_rank)
        return reading, [s for s in self._active if s.state is State.RUNNING]

    def _wait(self, sequence: Sequence) -> None:
        self._waiting.append(sequence)
        self._waiting.sort(key=_rank)

    def _admit(self, sequences: Iterable[Sequence]) -> None:
        """Give free slots to waiting sequences."""
        for sequence in list(sequences):
            free = self._slots_for(sequence)
            if free and _pages(sequence) > self._room:
                return  # smaller ones behind it would keep it waiting for ever
            if free:
                self._room -= _pages(sequence)
                self._waiting.remove(sequence)
                self._active.append(sequence)
                sequence.slot, sequence.state = heappop(free), State.PREFILL

    def _slots_for(self, sequence: Sequence) -> list[int]:
        """Free slots that the sequence may have; lowest first, so that rows lie close together."""
        if sequence.interactive:
            return self._kept or self._open
        return self._open if sequence.offline else self._open or self._kept

    def _give_up_slot(self, sequence: Sequence) -> None:
        self._active.remove(sequence)
        self._room += _pages(sequence)
        heappush(self._kept if sequence.slot < self._reserved else self._open, sequence.slot)

    def _make_room(self) -> None:
        """Take slots from the newest offline sequences for interactive ones that have none."""
        urgent = [s for s in self._waiting if s.interactive]
        wanted = len(urgent) - len(self._kept) - len(self._open)
        short = sum(map(_pages, urgent)) - self._room
        if not urgent or (wanted <= 0 and short <= 0):
            return
        for sequence in sorted((s for s in self._active if s.offline), key=_rank, reverse=True):
            if wanted <= 0 and short <= 0:
                return
            wanted, short = wanted - 1, short - _pages(sequence)
            self._give_up_slot(sequence)
            sequence.slot, sequence.computed, sequence.state = -1, 0, State.WAITING
            self._wait(sequence)

    def _urgent(self, rows: list[Sequence], prompts: list[Sequence]) -> StepPlan:
        """Interactive prompts whole, or in chunks where somebody waits for the next token."""
        return _plan(rows, _take(prompts, self._chunk if rows else _WHOLE_PROMPTS))

    def _beside_interactive(self, running: list[Sequence], reading: list[Sequence]) -> StepPlan:
        """Offline work in what the target leaves beside the interactive rows."""
        rows = [s for s in running if s.interactive]
        offline = sorted((s for s in running if not s.interactive), key=lambda s: s.slot)
        alone = self.times.predict(_plan(rows, []).work)
        target = max(self._itl_target, _LEAST_TARGET * alone)
        prompts: list[tuple[Sequence, int]] = []
        if reading:
            left = target - alone
            fitting = self.times.prompt_within(left / 2 if offline else left)
            prompts = _take(reading, min(self._chunk, max(_LEAST_CHUNK, fitting)))
        chosen = self._next_turn(offline, _plan(rows, prompts).work, target)
        return _plan([*rows, *chosen], prompts)

    def _next_turn(self, offline: list[Sequence], work: Work, target: float) -> list[Sequence]:
        """The next rows in turn that fit beside ``work``, at least one of them."""
        at = next((at for at, s in enumerate(offline) if s.slot >= self._turn), 0)
        chosen: list[Sequence] = []
        for sequence in offline[at:] + offline[:at]:
            work = Work(work.rows + 1, work.kv + sequence.length, work.prompt)
            if chosen and self.times.predict(work) > target:
                break
            chosen.append(sequence)
            self._turn = sequence.slot + 1
        return chosen


def _rank(sequence: Sequence) -> tuple[int, int]:
    priority = _UNSAID if sequence.priority is None else sequence.priority
    return priority, sequence.arrival


def _pages(sequence: Sequence) -> int:
    return pages_for(len(sequence.prompt) + sequence.max_tokens)


def _take(reading: Iterable[Sequence], tokens: int) -> list[tuple[Sequence, int]]:
    """Prompt pieces of at most ``tokens`` in all, first come first."""
    chosen = []
    for sequence in reading:
        count = min(sequence.unread, tokens)
        if count <= 0:
            break
        tokens -= count
        chosen.append((sequence, count))
    return chosen


def _plan(rows: list[Sequence], prompts: list[tuple[Sequence, int]]) -> StepPlan:
    return StepPlan(tuple(sorted(rows, key=lambda s: s.slot)), tuple(prompts))
