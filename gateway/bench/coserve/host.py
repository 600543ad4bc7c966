"""One simulated engine in virtual time, with who is on it."""

import math
from typing import TYPE_CHECKING

from gateway.bench.coserve.record import CallRecord, Record
from gateway.bench.coserve.rows import Row
from gateway.bench.coserve.word import EngineLoad
from gateway.pacing.step_time import StepSample
from gateway.simulator.engine import Engine, Step
from gateway.simulator.sequence import Sequence, State

if TYPE_CHECKING:
    from gateway.bench.coserve.lane import OfflineLane

_OFFLINE_PRIORITY = 10
_SAMPLE_SECONDS = 0.5


class EngineHost:
    """Runs steps of ``engine``; ``due`` is when the one under way ends, infinite without one.

    One that is not ``up`` gets nothing.
    """

    def __init__(self, engine: Engine, record: Record) -> None:
        self.engine = engine
        self.load = EngineLoad()
        self.lane: OfflineLane | None = None
        self.up = True
        self.due = math.inf
        self._record = record
        self._step: Step | None = None
        self._asking: dict[Sequence, CallRecord] = {}
        self._talking: dict[Sequence, CallRecord] = {}
        self._sequences: dict[Row, Sequence] = {}
        self._sums = [0.0] * 5

    def take_call(self, call: CallRecord, now: float) -> None:
        """An interactive call arrives."""
        self.load.calls += 1
        self.load.prefilling += 1
        sequence = Sequence(call.prompt, call.output, owner=call)
        self._asking[sequence] = call
        self.engine.add(sequence)
        self.begin_step(now)

    def start(self, row: Row) -> None:
        """An offline row arrives."""
        sequence = Sequence(row.prompt, row.output, _OFFLINE_PRIORITY, row)
        self._sequences[row] = sequence
        self.engine.add(sequence)

    def stop(self, row: Row) -> None:
        """An offline row is taken back."""
        self.engine.cancel(self._sequences.pop(row))

    def feed(self) -> None:
        """Let the lane start what may start."""
        if self.lane is not None:
            self.lane.start_ready()

    def restart(self) -> None:
        """The engine loses all it has: calls fail, rows are sent again by their lane."""
        for sequence in [*self._talking, *self._asking, *self._sequences.values()]:
            self.engine.cancel(sequence)
        for call in [*self._talking.values(), *self._asking.values()]:
            call.failed = True
        rows = list(self._sequences)
        self._talking.clear()
        self._asking.clear()
        self._sequences.clear()
        self.load.calls = self.load.prefilling = 0
        self._step, self.due = None, math.inf
        if self.lane is not None:
            self.lane.lost(rows)

    def begin_step(self, now: float) -> None:
        """The next step, unless one is under way or there is nothing to do."""
        if self._step is None and not self.engine.idle:
            self._step = self.engine.step()
            self.due = now + self._step.seconds

    def finish_step(self, now: float) -> bool:
        """Hand out what the step under way gave; whether the interactive load changed."""
        step, self._step, self.due = self._step, None, math.inf
        assert step is not None
        changed = False
        for sequence in step.first:
            changed |= self._first(sequence)
        spoken = self._speak(now)
        decoded = len(self.engine.decoding) + len(step.ended)
        self._record.output_tokens += decoded - spoken
        for sequence in (*step.ended, *step.failed):
            changed |= self._end(sequence, now)
        self._sample(step)
        return changed

    def _first(self, sequence: Sequence) -> bool:
        owner = sequence.owner
        if isinstance(owner, CallRecord):
            self._talking[sequence] = self._asking.pop(sequence)
            self.load.prefilling -= 1
            return True
        # It may have been taken back while the step that read its prompt was under way.
        if owner in self._sequences:
            self._record.prompt_tokens += sequence.prompt
            if self.lane is not None:
                self.lane.first_token(owner)
        return False

    def _speak(self, now: float) -> int:
        """A token for each interactive call that decodes; how many there were."""
        spoken = 0
        for sequence, call in self._talking.items():
            if sequence.state in {State.DECODE, State.DONE}:
                self._record.token(call, now)
                spoken += 1
        return spoken

    def _end(self, sequence: Sequence, now: float) -> bool:
        owner = sequence.owner
        if isinstance(owner, CallRecord):
            self.load.calls -= 1
            if self._talking.pop(sequence, None) is None:
                del self._asking[sequence]
                self.load.prefilling -= 1
            owner.ended, owner.failed = True, sequence.failed
            self.load.ended.append(owner)
            return True
        if self._sequences.pop(owner, None) is not None:
            self._record.rows += 1
            self._record.finished[owner.job] = now
            self._record.ended[owner.job] += 1
            if self.lane is not None:
                self.lane.ended(owner)
        return False

    def _sample(self, step: Step) -> None:
        self._record.busy += step.seconds
        sums = self._sums
        for at, value in enumerate((step.rows, step.kv, step.prefill, step.seconds, 1)):
            sums[at] += value
        if sums[3] >= _SAMPLE_SECONDS:
            rows, kv, prefill, seconds, count = sums
            means = (rows / count, kv / count, prefill / count, seconds / count)
            self._record.samples.append(StepSample(*means))
            self._sums = [0.0] * 5
