"""The step loop: take what arrived, plan, run, settle, tell. One thread, no event loop in it."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from gateway.core.errors import HeadwayError, UpstreamFailed
from gateway.worker.model_runner import ModelRunner
from gateway.worker.sampler import Sampled
from gateway.worker.scheduler import Scheduler, StepPlan
from gateway.worker.sequence import Event, Sequence, State
from gateway.worker.tokenizer import Vocabulary

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Counts:
    """Sums since the start. ``row_steps / steps`` is the mean number of rows decoded at once."""

    steps: int = 0
    row_steps: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    busy_seconds: float = 0.0


class Engine:
    """Continuous batching over one model. ``deliver`` gets the events of a step, in its thread."""

    def __init__(
        self,
        runner: ModelRunner,
        scheduler: Scheduler,
        vocabulary: Vocabulary,
        deliver: Callable[[list[Event]], None],
    ) -> None:
        self._runner = runner
        self._scheduler = scheduler
        self._vocabulary = vocabulary
        self._deliver = deliver
        self._inbox: deque[tuple[bool, Sequence]] = deque()
        self._wake = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._loop, name="engine", daemon=True)
        self.counts = Counts()
        self.running = 0
        self.paused = 0

    @property
    def waiting(self) -> int:
        """Sequences without a slot."""
        return self._scheduler.waiting

    @property
    def active(self) -> int:
        """Sequences with a slot."""
        return self._scheduler.active

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the loop after the step that is running."""
        with self._wake:
            self._stopped = True
            self._wake.notify()
        self._thread.join(timeout=5)

    def submit(self, sequence: Sequence) -> None:
        """Take a sequence. From any thread."""
        self._post(True, sequence)

    def abort(self, sequence: Sequence) -> None:
        """Nobody reads it any more: its slot is free before the next step. From any thread."""
        self._post(False, sequence)

    def _post(self, new: bool, sequence: Sequence) -> None:
        with self._wake:
            self._inbox.append((new, sequence))
            self._wake.notify()

    def _loop(self) -> None:
        while not self._stopped:
            self._take_inbox()
            plan = self._scheduler.plan()
            if plan:
                started = time.perf_counter()
                events = self._step(plan)
                self._count(plan, time.perf_counter() - started)
                if events:
                    self._deliver(events)
            else:
                self.running = self.paused = 0
                self._rest()

    def _take_inbox(self) -> None:
        while self._inbox:
            new, sequence = self._inbox.popleft()
            if new:
                self._scheduler.add(sequence)
            else:
                self._scheduler.remove(sequence)

    def _rest(self) -> None:
        with self._wake:
            while not self._inbox and not self._stopped:
                self._wake.wait()

    def _step(self, plan: StepPlan) -> list[Event]:
        """Run a plan; one that does not fit in memory is run in halves, down to one sequence."""
        try:
            results = self._runner.run(plan)
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError):
                log.exception("a step failed")
            halves = _halves(plan)
            if halves:
                return [event for half in halves for event in self._step(half)]
            code = "out_of_memory" if isinstance(error, MemoryError) else "engine_error"
            return [self._failed(sequence, code) for sequence in _members(plan)]
        for sequence, count in plan.prompts:
            sequence.computed += count
            if sequence.unread == 0:
                sequence.state = State.RUNNING
        return [self._advance(sequence, sampled) for sequence, sampled in results]

    def _advance(self, sequence: Sequence, sampled: Sampled) -> Event:
        """Append a token and say what it means."""
        if sampled.token is None:
            return self._failed(sequence, "numerical_error")
        sequence.computed = sequence.length
        sequence.output.append(sampled.token)
        ended = sampled.token in self._vocabulary.stops and not sequence.sampling.ignore_eos
        text = "" if ended else sequence.text.feed(self._vocabulary.pieces(sampled.token))
        reason = None
        if ended or sequence.text.stopped:
            reason = "stop"
        elif len(sequence.output) >= sequence.max_tokens:
            reason = "length"
        if reason is not None:
            text += sequence.text.finish()
            self._scheduler.remove(sequence)
        return Event(sequence, text, 1, None if ended else sampled.logprob, reason)

    def _failed(self, sequence: Sequence, code: str) -> Event:
        self._scheduler.remove(sequence)
        return Event(sequence, error=_error(code))

    def _count(self, plan: StepPlan, seconds: float) -> None:
        rows, tokens = len(plan.decodes), plan.prompt_tokens
        self._scheduler.times.learn(rows, tokens, seconds)
        self.counts.steps += 1
        self.counts.row_steps += rows
        self.counts.prompt_tokens += tokens
        self.counts.output_tokens += rows
        self.counts.busy_seconds += seconds
        self.running = rows + len(plan.prompts)
        self.paused = max(0, self._scheduler.active - self.running)


def _members(plan: StepPlan) -> list[Sequence]:
    return [*plan.decodes, *(sequence for sequence, _ in plan.prompts)]


def _halves(plan: StepPlan) -> list[StepPlan]:
    """Two smaller plans; none when there is one sequence."""
    if len(plan.decodes) + len(plan.prompts) < 2:  # noqa: PLR2004 - one cannot be halved
        return []
    if plan.decodes and plan.prompts:
        return [StepPlan(plan.decodes, ()), StepPlan((), plan.prompts)]
    rows, prompts = len(plan.decodes) // 2, len(plan.prompts) // 2
    return [
        StepPlan(plan.decodes[:rows], plan.prompts[:prompts]),
        StepPlan(plan.decodes[rows:], plan.prompts[prompts:]),
    ]


def _error(code: str) -> HeadwayError:
    sentence = {
        "numerical_error": "The model's output for this request was not a number.",
        "out_of_memory": "This request does not fit in the worker's memory.",
    }
    return UpstreamFailed(
        sentence.get(code, "The worker failed at this request."), target="local", code=code
    )
