"""The engine as a thread."""

import asyncio
import threading
from collections.abc import Callable

from gateway.worker.engine import Engine
from gateway.worker.sampler import Sampled
from gateway.worker.sampling import SamplingParams
from gateway.worker.scheduler import Scheduler, StepPlan
from gateway.worker.sequence import Event, Sequence
from gateway.worker.tokenizer import ByteVocabulary
from tests.support.worker import complete, tiny_worker


async def test_tokens_are_counted_once() -> None:
    """Sums over steps are the sums over answers, less the token each prompt gives."""
    async with tiny_worker() as (client, engine):
        calls = (complete(client, f"p{n}", max_tokens=9, ignore_eos=True) for n in range(6))
        answers = await asyncio.gather(*calls)
        counts = engine.counts
    assert counts.prompt_tokens == sum(a["usage"]["prompt_tokens"] for a in answers)
    assert counts.row_steps + 6 == sum(a["usage"]["completion_tokens"] for a in answers)


async def test_rows_are_decoded_together() -> None:
    """Sixteen calls take far fewer steps than one after the other."""
    async with tiny_worker() as (client, engine):
        calls = (complete(client, f"p{n}", max_tokens=20, ignore_eos=True) for n in range(16))
        await asyncio.gather(*calls)
        assert engine.counts.row_steps / engine.counts.steps > 4


async def test_an_idle_engine_rests() -> None:
    """No steps are run when there is nothing to do, and stop ends the thread."""
    async with tiny_worker() as (client, engine):
        await complete(client, "a")
        steps = engine.counts.steps
        await asyncio.sleep(0.05)
        assert engine.counts.steps == steps


class _SlowStep:
    """A runner whose offline steps wait, between two layers, until an interactive call is there."""

    def __init__(self) -> None:
        self.inside, self.go_on = threading.Event(), threading.Event()
        self.ran: list[list[int | None]] = []

    def run(
        self, plan: StepPlan, between: Callable[[], None] | None = None
    ) -> list[tuple[Sequence, Sampled]]:
        if between is not None and any(s.offline for s in plan.members):
            self.inside.set()
            self.go_on.wait(10)
            between()
        self.ran.append([s.priority for s in plan.members])
        return [(sequence, Sampled(65)) for sequence in plan.members]


def test_an_interactive_prompt_does_not_wait_for_a_running_step() -> None:
    """It is read between two layers of an offline step, and its token is told before."""
    runner, done = _SlowStep(), threading.Event()
    told: list[int | None] = []

    def deliver(events: list[Event]) -> None:
        told.extend(event.sequence.priority for event in events)
        if len(told) == 2:
            done.set()

    scheduler = Scheduler(4, 1, itl_target=0.05, prefill_chunk=64)
    engine = Engine(
        runner,
        scheduler,
        ByteVocabulary(),
        deliver,
        itl_target=0.05,
        on_death=lambda: None,
    )
    offline, urgent = (Sequence([1], 1, SamplingParams(), n, print) for n in (100, 0))
    engine.submit(offline)
    engine.start()
    assert runner.inside.wait(10)
    engine.submit(urgent)
    runner.go_on.set()
    assert done.wait(10)
    engine.stop()
    assert (told, runner.ran) == ([0, 100], [[0], [100]])


def test_a_fault_of_the_engine_is_told() -> None:
    """Nobody is left waiting for an engine that is no more."""
    died = threading.Event()

    def deliver(_: list[Event]) -> None:
        raise KeyError("a fault")

    runner = _SlowStep()
    engine = Engine(
        runner,
        Scheduler(4, 1, itl_target=0.05, prefill_chunk=64),
        ByteVocabulary(),
        deliver,
        itl_target=0.05,
        on_death=died.set,
    )
    engine.submit(Sequence([1], 1, SamplingParams(), None, print))
    engine.start()
    assert died.wait(10)
    engine.stop()
