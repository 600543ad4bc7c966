"""Step times of the bundled worker's engine, without HTTP.

    .venv/bin/python benchmarks/worker_steps.py

Decode steps at 1, 8, 32 and 64 rows (128-token prompts, greedy, end of text ignored) and the speed
of reading prompts. Figures are minima over many steps, so that other load on the machine counts
little.
"""

import time

import torch

from gateway.worker.engine import Runner
from gateway.worker.model_runner import ModelRunner
from gateway.worker.options import Faults, WorkerOptions
from gateway.worker.run import load_model
from gateway.worker.sampling import SamplingParams
from gateway.worker.scheduler import StepPlan
from gateway.worker.sequence import Sequence, State

PROMPT = 128
STEPS = 40
ROWS = (1, 8, 32, 64)
PROMPTS = (1, 4, 8)


def sequence(slot: int, sampling: SamplingParams) -> Sequence:
    """A sequence in its slot, nothing of it read."""
    prompt = torch.randint(100, 40_000, (PROMPT,), generator=torch.Generator().manual_seed(slot))
    made = Sequence(prompt.tolist(), STEPS + 2, sampling, None, print)
    made.slot, made.state = slot, State.PREFILL
    return made


def timed_step(runner: Runner, plan: StepPlan) -> float:
    """Run a plan, settle it as the engine does, and give its seconds."""
    started = time.perf_counter()
    results = runner.run(plan)
    seconds = time.perf_counter() - started
    for row, sampled in results:
        row.computed = row.length
        row.output.append(sampled.token or 0)
    return seconds


def prefill_seconds(runner: ModelRunner, count: int) -> float:
    """Best of some steps that read ``count`` prompts at once."""
    times = []
    for _ in range(8):
        rows = [sequence(slot, SamplingParams(temperature=0)) for slot in range(count)]
        times.append(timed_step(runner, StepPlan((), tuple((row, PROMPT) for row in rows))))
    return min(times)


def decode_seconds(runner: ModelRunner, count: int, sampling: SamplingParams) -> float:
    """Best of ``STEPS`` decode steps of ``count`` rows."""
    rows = [sequence(slot, sampling) for slot in range(count)]
    for row in rows:
        timed_step(runner, StepPlan((), ((row, PROMPT),)))
    return min(timed_step(runner, StepPlan(tuple(rows), ())) for _ in range(STEPS))


def main() -> None:
    """Load the packaged model and print the table."""
    started = time.perf_counter()
    options = WorkerOptions()
    model, _ = load_model(options)
    print(f"model loaded in {time.perf_counter() - started:.2f} s")  # noqa: T201
    runner = ModelRunner(model, options.rows, options.context, Faults())
    for count in PROMPTS:
        seconds = prefill_seconds(runner, count)
        speed = count * PROMPT / seconds
        print(f"read {count} x {PROMPT} tokens  {seconds * 1e3:7.1f} ms  {speed:7.0f} tok/s")  # noqa: T201
    for name, sampling in (
        ("greedy", SamplingParams(temperature=0)),
        ("temperature 1", SamplingParams()),
        ("temperature 1, top_p 0.9", SamplingParams(top_p=0.9)),
    ):
        for count in ROWS:
            seconds = decode_seconds(runner, count, sampling)
            rate = count / seconds
            print(f"decode {count:>2} rows {seconds * 1e3:7.1f} ms {rate:7.0f} tok/s {name}")  # noqa: T201


if __name__ == "__main__":
    main()
