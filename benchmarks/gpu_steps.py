"""Step times of the bundled worker on a GPU, without HTTP, and a fit of them.

    python benchmarks/gpu_steps.py shape:llama-3-8b

Prompts read alone (the least of five, which is the time to a first token), decode steps at 1, 8, 64
and 256 rows (the median).
"""

import statistics
import sys
import time
from collections.abc import Iterator

import numpy as np
from worker_steps import timed_step

from gateway.worker.device.runner import PagedRunner
from gateway.worker.options import Faults, WorkerOptions
from gateway.worker.pages import PAGE
from gateway.worker.run import load_model
from gateway.worker.sampling import SamplingParams
from gateway.worker.scheduler import StepPlan
from gateway.worker.sequence import Sequence

CONTEXT = 16_640
ROWS = (1, 8, 64, 256)
LENGTHS = (512, 2048)
PROMPTS = (64, 256, 512, 1180, 2048, 4096, 8192)
REPEATS = 5
STEPS = 24
Point = tuple[float, float, float, float]
"""Rows, cached tokens, prompt tokens, milliseconds."""


def say(text: str) -> None:
    """One line, at once."""
    print(text, flush=True)  # noqa: T201


def sequence(slot: int, prompt: int) -> Sequence:
    """A sequence in its slot, nothing of it read."""
    made = Sequence([7 + slot] * prompt, 8000, SamplingParams(temperature=0), None, print)
    made.slot = slot
    return made


def prompts(runner: PagedRunner) -> Iterator[Point]:
    """Prompts of several lengths, each alone."""
    for length in PROMPTS:
        plans = [StepPlan((), ((sequence(0, length), length),)) for _ in range(REPEATS)]
        least = min(1000 * timed_step(runner, plan) for plan in plans)
        say(f"  read {length:>5} tokens: {least:7.2f} ms, {1000 * length / least:8,.0f} tok/s")
        yield 0, 0, length, least


def decodes(runner: PagedRunner) -> Iterator[Point]:
    """Rows of several numbers and lengths."""
    for length in LENGTHS:
        rows = [sequence(slot, length) for slot in range(ROWS[-1])]
        for row in rows:
            timed_step(runner, StepPlan((), ((row, length),)))
        for count in ROWS:
            some = tuple(rows[:count])
            middle = statistics.median(
                1000 * timed_step(runner, StepPlan(some, ())) for _ in range(STEPS)
            )
            rate = 1000 * count / middle
            say(f"  decode {count:>3} rows of {length}: {middle:7.2f} ms, {rate:8,.0f} tok/s")
            yield count, sum(row.length for row in some), 0, middle


def measure(model: str) -> None:
    """All of one model; the fit is by least squares of the relative error."""
    started = time.perf_counter()
    loaded, _ = load_model(WorkerOptions(model=model, context=CONTEXT, device="cuda"))
    runner = PagedRunner(loaded, ROWS[-1], CONTEXT, Faults())
    seconds = time.perf_counter() - started
    say(f"{model}: ready in {seconds:.1f} s, room for {runner.room * PAGE:,} tokens")
    table = np.array([*prompts(runner), *decodes(runner)])
    x = np.column_stack([np.ones(len(table)), table[:, :3]]) / table[:, 3:]
    (step, row, cached, prompt), *_ = np.linalg.lstsq(x, np.ones(len(table)), rcond=None)
    say(f"  step: {step:.2f} ms, {row:.4f} a row, {cached:.6f} a token kept, {prompt:.5f} one read")


if __name__ == "__main__":
    measure(sys.argv[1])
