"""The step loop: take what arrived, plan, run, settle, tell. One thread, no event loop in it."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gateway.core.errors import HeadwayError, UpstreamFailed
from gateway.worker.sampler import Sampled
from gateway.worker.scheduler import Scheduler, StepPlan
from gateway.worker.sequence import Event, Sequence, State
from gateway.worker.step_time import Work
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


class Runner(Protocol):
    """What the engine needs of a model."""

    def run(
        self, plan: StepPlan, between: Callable[[], None] | None = None
    ) -> list[tuple[Sequence, Sampled]]:
        """Run a plan; see ModelRunner."""


class Engine:
    """Continuous batching over one model. ``deliver`` gets the events of a step, in its thread.

    An interactive sequence does not wait for an offline step to end: its prompt is read between two
    layers of that step, and so is its next token when it has waited for ``itl_target`` seconds.
    ``on_death`` is called in the engine's thread when it ends by a fault of its own.
    """

    def __init__(
        self,
        runner: Runner,
        scheduler: Scheduler,
        vocabulary: Vocabulary,
        deliver: Callable[[list[Event]], None],
        *,
        itl_target: float,
        on_death: Callable[[], object],
    ) -> None:
        self._runner = runner
        self._scheduler = scheduler
        self._vocabulary = vocabulary
        self._deliver = deliver
        self._itl_target = itl_target
        self._on_death = on_death
        self._urgent: deque[Sequence] = deque()
        self._inbox: deque[tuple[bool, Sequence]] = deque()
        self._wake = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._live, name="engine", daemon=True)
        self._busy: frozenset[Sequence] = frozenset()
        self._apart: tuple[Sequence, ...] = ()
        self._last_apart = 0.0
        self._elsewhere = 0.0
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
        with self._wake:
            if sequence.interactive:
                self._urgent.append(sequence)
            else:
                self._inbox.append((True, sequence))
            self._wake.notify()

    def abort(self, sequence: Sequence) -> None:
        """Nobody reads it any more: its slot is free before the next step. From any thread."""
        with self._wake:
            self._inbox.append((False, sequence))
            self._wake.notify()

    def _live(self) -> None:
        try:
            self._loop()
        except Exception:
            log.critical("the engine failed", exc_info=True)
            self._on_death()

    def _loop(self) -> None:
        while not self._stopped:
            self._take_inbox()
            plan = self._scheduler.plan()
            if plan:
                self._busy, self._apart = frozenset(plan.members), ()
                # A step with interactive rows is short: others would wait twice for one inside it.
                short = any(row.interactive for row in plan.members)
                self._run(plan, None if short else self._between)
            else:
                self.running = self.paused = 0
                self._rest()

    def _run(self, plan: StepPlan, between: Callable[[], None] | None) -> None:
        """Run a plan, count it and tell its events."""
        started, self._elsewhere = time.perf_counter(), 0.0
        work = plan.work
        events = self._step(plan, between)
        self._count(plan, work, events, time.perf_counter() - started - self._elsewhere)
        if events:
            self._deliver(events)

    def _between(self) -> None:
        """Between two layers of a step: interactive sequences that cannot wait for its end."""
        if not self._urgent and not self._apart:
            return
        self._take_urgent()
        started = time.perf_counter()
        due = started - self._last_apart >= self._itl_target
        plan = self._scheduler.plan_urgent(self._busy, decode=due)
        if plan:
            elsewhere = self._elsewhere
            self._run(plan, None)
            self._apart = tuple(s for s in plan.members if s.state is not State.DONE)
            self._last_apart = time.perf_counter()
            self._elsewhere = elsewhere + self._last_apart - started

    def _take_urgent(self) -> None:
        while self._urgent:
            self._scheduler.add(self._urgent.popleft())

    def _take_inbox(self) -> None:
        self._take_urgent()
        while self._inbox:
            new, sequence = self._inbox.popleft()
            if new:
                self._scheduler.add(sequence)
            else:
                self._scheduler.remove(sequence)

    def _rest(self) -> None:
        with self._wake:
            while not self._inbox and not self._urgent and not self._stopped:
                self._wake.wait()

    def _step(self, plan: StepPlan, between: Callable[[], None] | None) -> list[Event]:
        """Run a plan; one that fails is run in halves, down to the sequence that makes it fail."""
        try:
            results = self._runner.run(plan, between)
        except (MemoryError, RuntimeError, IndexError, ValueError) as error:
            halves = _halves(plan)
            if halves:
                return [event for half in halves for event in self._step(half, between)]
            code = _code_of(error)
            log.warning("a sequence failed: %s", code, exc_info=code == "engine_error")
            return [self._failed(sequence, code) for sequence in plan.members]
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

    def _count(self, plan: StepPlan, work: Work, events: list[Event], seconds: float) -> None:
        self._scheduler.times.learn(work, seconds)
        self.counts.steps += 1
        self.counts.row_steps += work.rows
        self.counts.prompt_tokens += work.prompt
        self.counts.output_tokens += sum(event.tokens for event in events)
        self.counts.busy_seconds += seconds
        self.running = len(plan.members)
        self.paused = max(0, self._scheduler.active - self.running)


def _halves(plan: StepPlan) -> list[StepPlan]:
    """Two smaller plans; none when there is one sequence."""
    if len(plan.members) < 2:  # noqa: PLR2004 - one cannot be halved
        return []
    if plan.decodes and plan.prompts:
        return [StepPlan(plan.decodes, ()), StepPlan((), plan.prompts)]
    rows, prompts = len(plan.decodes) // 2, len(plan.prompts) // 2
    return [
        StepPlan(plan.decodes[:rows], plan.prompts[:prompts]),
        StepPlan(plan.decodes[rows:], plan.prompts[prompts:]),
    ]


def _code_of(error: Exception) -> str:
    """Which it is: there is no class of its own for memory that cannot be had."""
    short = isinstance(error, MemoryError) or "allocate" in str(error)
    return "out_of_memory" if short else "engine_error"


def _error(code: str) -> HeadwayError:
    sentence = {
        "numerical_error": "The model's output for this request was not a number.",
        "out_of_memory": "This request does not fit in the worker's memory.",
    }
    return UpstreamFailed(
        sentence.get(code, "The worker failed at this request."), target="local", code=code
    )
