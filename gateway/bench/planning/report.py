"""A plan for people and for programs."""

import math
from typing import Any

from gateway.bench.planning.plan import AVAILABLE, Fleet, Plan


def as_json(plan: Plan) -> dict[str, Any]:
    """Everything that the report says; what never ends is null."""
    engine, profile = plan.engine, plan.profile
    return {
        "items": plan.job.items,
        "tokens": round(plan.job.tokens),
        "deadline_seconds": plan.job.deadline,
        "workers": plan.fleet.workers,
        "workers_needed": plan.needed,
        "interactive_workers": round(plan.load, 3),
        "batch_size": math.floor(engine.rows),
        "batch_limit": engine.limit,
        "bound": engine.bound,
        "step_ms": round(engine.step * 1000, 2),
        "step_shares": {name: round(share, 3) for name, share in engine.spent.items()},
        "items_per_second_per_worker": round(engine.items, 4),
        "kv_tokens": profile.kv_tokens,
        "fleet": _fleet(plan.fleet),
        "one_fewer": None if plan.fewer is None else _fleet(plan.fewer),
        "one_more": _fleet(plan.more),
        "price_per_million_tokens": _finite(plan.fleet.cost / plan.job.tokens * 1e6, 4),
        "step_ms_coefficients": {n: getattr(profile, n) for n in ("a", "b", "c", "h", "row")},
        "source": profile.source,
        "warnings": list(plan.warnings),
    }


def as_text(plan: Plan) -> str:
    """A few lines."""
    engine, job = plan.engine, plan.job
    spent = ", ".join(f"{name} {share:.0%}" for name, share in engine.spent.items())
    due = "" if job.deadline is None else f", due in {span(job.deadline)}"
    beside = f" beside {plan.load:.1f} for interactive calls" if plan.load else ""
    late, dear = span(plan.fleet.seconds / AVAILABLE), _per_million(plan)
    lines = [
        f"Job: {job.items:,} items, {job.tokens / 1e6:,.1f} M tokens{due}",
        f"Workers: {plan.fleet.workers}{beside}, each {plan.profile.name}",
        f"Batch: {math.floor(engine.rows)} rows at once, limited by {engine.limit}; {engine.bound}",
        f"Step: {engine.step * 1000:.1f} ms ({spent})",
        f"Finish: {span(plan.fleet.seconds)}, {late} with workers up {AVAILABLE:.0%} of the time",
        f"Cost: {_money(plan.fleet)} at {plan.profile.price:g} per worker and hour{dear}",
        f"One worker more: {_said(plan.more)}",
    ]
    if plan.fewer is not None:
        lines.append(f"One worker fewer: {_said(plan.fewer)}")
    lines += [f"Step times from: {plan.profile.source}"]
    return "\n".join(lines + [f"Warning: {text}" for text in plan.warnings])


def span(seconds: float) -> str:
    """A time as people say it."""
    if seconds == math.inf:
        return "never"
    if seconds < 120:  # noqa: PLR2004 - two minutes
        return f"{seconds:.0f} s"
    if seconds < 7200:  # noqa: PLR2004 - two hours
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _per_million(plan: Plan) -> str:
    per_million = plan.fleet.cost / plan.job.tokens * 1e6
    return f", {per_million:.3f} per million tokens" if per_million < math.inf else ""


def _said(fleet: Fleet) -> str:
    late = "" if fleet.in_time else ": too late"
    return f"{span(fleet.seconds)}, cost {_money(fleet)}{late}"


def _money(fleet: Fleet) -> str:
    return "-" if fleet.cost == math.inf else f"{fleet.cost:,.2f}"


def _fleet(fleet: Fleet) -> dict[str, Any]:
    return {
        "workers": fleet.workers,
        "seconds": _finite(fleet.seconds, 1),
        "cost": _finite(fleet.cost, 2),
        "in_time": fleet.in_time,
    }


def _finite(value: float, digits: int) -> float | None:
    return None if value == math.inf else round(value, digits)
