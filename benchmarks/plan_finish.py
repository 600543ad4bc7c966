"""When a job ends by ``headway plan`` and in the simulated engine, as rows of a table.

    python benchmarks/plan_finish.py

First jobs alone on two workers, then jobs beside the calls of a chat, under the dispatcher's own
pacer, in virtual time. Takes some minutes.
"""

import sys
from dataclasses import replace
from itertools import islice
from statistics import fmean, pstdev

from gateway.bench.coserve.arms import Arm, Scene, run_arm
from gateway.bench.coserve.rows import Backlog
from gateway.bench.planning.plan import Interactive, Job, make_plan
from gateway.bench.planning.steady import Shape
from gateway.bench.workload.trace import CHAT, SUMMARIES, Lengths, backlog
from gateway.pacing.shared import Caps
from gateway.simulator.engine import Engine
from gateway.simulator.profile import PROFILES, EngineProfile
from gateway.simulator.sequence import Sequence

SHORT = Lengths(499, 0.5, 201, 0.5)
LONG = Lengths(4000, 0.3, 30, 0.5)
CALLS = Shape(1180, 252, 1.27)
ALONE = [
    ("a100-8b", SUMMARIES),
    ("a100-7b", SUMMARIES),
    ("h200-8b", Lengths(216, 0.32, 395, 0.9)),
    ("h100-7b", CHAT),
    ("h200-8b", LONG),
    ("a100-8b", Lengths(500, 0.0, 500, 0.0)),
]
BESIDE = [
    ("a100-8b", 512, 2, 5.04, SUMMARIES, 6000),
    ("a100-8b", 512, 2, 2.52, SUMMARIES, 6000),
    ("a100-8b", 512, 2, 8.0, SUMMARIES, 4000),
    ("a100-8b", 512, 2, 5.04, SHORT, 6000),
    ("a100-8b", 2048, 2, 5.04, SUMMARIES, 6000),
    ("a100-8b", 2048, 2, 2.52, SUMMARIES, 6000),
    ("a100-8b", 2048, 2, 8.0, SUMMARIES, 4000),
    ("h200-8b", 8192, 1, 5.04, SUMMARIES, 6000),
    ("h100-7b", 512, 2, 5.04, SUMMARIES, 6000),
    ("h100-7b", 512, 2, 5.04, LONG, 4000),
]


def main() -> None:
    """Both tables."""
    for name, lengths in ALONE:
        rows = list(islice(backlog(lengths, 1), 4000))
        plan = make_plan(PROFILES[name], Job(4000, _shape(rows)), workers=2)
        found = max(_alone(PROFILES[name], rows[at::2]) for at in range(2))
        _say(f"{name} | 2 | -", lengths, 4000, plan.fleet.seconds, found)
    for name, budget, engines, rate, lengths, items in BESIDE:
        engine = replace(PROFILES[name], max_num_batched_tokens=budget)
        rows = list(islice(backlog(lengths, 1), items))
        plan = make_plan(engine, Job(items, _shape(rows)), Interactive(rate, CALLS), engines)
        found = _beside(engine, engines, rate, rows, 1.4 * plan.fleet.seconds)
        where = f"{name}, {budget} | {engines} | {rate:g}"
        _say(where, lengths, items, plan.fleet.seconds, found)


def _shape(rows: list[tuple[int, int]]) -> Shape:
    prompts, outputs = zip(*rows, strict=True)
    return Shape(fmean(prompts), fmean(outputs), pstdev(outputs) / fmean(outputs))


def _alone(profile: EngineProfile, rows: list[tuple[int, int]]) -> float:
    engine, seconds = Engine(profile), 0.0
    for prompt, output in rows:
        engine.add(Sequence(prompt, output))
    while not engine.idle:
        seconds += engine.step().seconds
    return seconds


def _beside(
    profile: EngineProfile, engines: int, rate: float, rows: list[tuple[int, int]], seconds: float
) -> float:
    scene = Scene(profile, engines=engines, rate=rate, seconds=seconds, lead=0.0)
    record = run_arm(Arm("headway", caps=Caps()), scene, 1, Backlog(rows))
    return record.finished[0] if record.rows == len(rows) else float("nan")


def _say(where: str, lengths: Lengths, items: int, plan: float, found: float) -> None:
    job = f"{items:,} of {lengths.prompt:,g} / {lengths.output:g}"
    figures = f"{plan:,.0f} | {found:,.0f} | {plan / found:.2f}"
    sys.stdout.write(f"| {where} | {job} | {figures} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
