"""Which sequences take part in the next step. No torch, no time of its own.

Without interactive work: read new prompts, at most ``prefill_chunk`` tokens, and decode every
running row. With it: an interactive prompt is read first, in a step with interactive rows alone;
afterwards offline rows and prompts fill what the step-time target leaves, in turns. A row that is
left out is paused: it keeps its slot and its cache. A slot is refilled in the very next step.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.worker.sequence import Sequence, State
from gateway.worker.step_time import StepTime

_UNSAID = 50
_INTERACTIVE_TOKENS = 2048
_PREFILL_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Rows that decode one token, by slot, and (sequence, prompt tokens to read)."""

    decodes: tuple[Sequence, ...]
    prompts: tuple[tuple[Sequence, int], ...]

    @property
    def prompt_tokens(self) -> int:
        """Prompt tokens of the step."""
        return sum(count for _, count in self.prompts)

    def __bool__(self) -> bool:
        return bool(self.decodes or self.prompts)


class Scheduler:
    """Owner of slots and queues.

    Interactive sequences may use every slot, offline ones may not use the first ``reserved``.
    """

    def __init__(
        self,
        rows: int,
        reserved: int,
        *,
        itl_target: float,
        prefill_chunk: int,
        times: StepTime | None = None,
    ) -> None:
        self._itl_target = itl_target
        self._chunk = prefill_chunk
        self._reserved = reserved
        self._free = set(range(rows))
        self._waiting: list[Sequence] = []
        self._active: list[Sequence] = []
        self._turn = 0
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
        self._waiting.append(sequence)
        self._waiting.sort(key=_rank)

    def remove(self, sequence: Sequence) -> None:
        """The sequence has ended or its reader has left; its slot is free at once."""
        if sequence.state is State.DONE:
            return
        if sequence.state is State.WAITING:
            self._waiting.remove(sequence)
        else:
            self._active.remove(sequence)
            self._free.add(sequence.slot)
        sequence.state = State.DONE

    def plan(self) -> StepPlan:
        """The next step; empty when there is nothing to do."""
        self._admit()
        reading = [s for s in self._active if s.state is State.PREFILL]
        running = [s for s in self._active if s.state is State.RUNNING]
        urgent = [s for s in reading if s.interactive]
        if urgent:
            rows = [s for s in running if s.interactive]
            return _plan(rows, _take(urgent, _INTERACTIVE_TOKENS))
        if any(s.interactive for s in running):
            return self._beside_interactive(running, reading)
        return _plan(running, _take(reading, self._chunk))

    def _admit(self) -> None:
        """Give free slots to waiting sequences: reserved ones to interactive sequences first."""
        for sequence in list(self._waiting):
            slot = self._slot_for(sequence)
            if slot is None:
                continue
            self._free.remove(slot)
            self._waiting.remove(sequence)
            sequence.slot, sequence.state = slot, State.PREFILL
            self._active.append(sequence)

    def _slot_for(self, sequence: Sequence) -> int | None:
        if sequence.interactive:
            return min(self._free, default=None)
        return min((slot for slot in self._free if slot >= self._reserved), default=None)

    def _beside_interactive(self, running: list[Sequence], reading: list[Sequence]) -> StepPlan:
        """Offline work in what the target leaves beside the interactive rows."""
        live = [s for s in running if s.interactive]
        offline = sorted((s for s in running if not s.interactive), key=lambda s: s.slot)
        left = self._itl_target - self.times.predict(len(live), 0)
        tokens = 0
        if reading:
            share = _PREFILL_SHARE if offline else 1.0
            wanted = self.times.tokens_within(self.times.predict(0, 0) + left * share)
            tokens = min(self._chunk, max(1, wanted))
        prompts = _take(reading, tokens)
        read = sum(count for _, count in prompts)
        fitting = self.times.rows_within(self._itl_target, read) - len(live)
        return _plan([*live, *self._next_turn(offline, fitting)], prompts)

    def _next_turn(self, offline: list[Sequence], count: int) -> list[Sequence]:
        """The next ``count`` rows in turn, so that every paused row goes on after a while."""
        if count >= len(offline):
            return offline
        if count <= 0:
            count = 1 if offline else 0
        later = [s for s in offline if s.slot >= self._turn]
        chosen = (later + [s for s in offline if s.slot < self._turn])[:count]
        if chosen:
            self._turn = chosen[-1].slot + 1
        return chosen


def _rank(sequence: Sequence) -> int:
    return _UNSAID if sequence.priority is None else sequence.priority


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
