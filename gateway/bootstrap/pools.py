"""The dispatcher's lanes, one a target, and its pools, one for each set of targets."""

import math
from collections.abc import Callable, Mapping, Sequence

from gateway.core.clock import Clock
from gateway.core.settings import Settings
from gateway.dispatch.gate import Gate
from gateway.dispatch.lane import TargetLane
from gateway.dispatch.pacing import FixedWindow
from gateway.dispatch.pool import Pool
from gateway.dispatch.rate import RateBudget
from gateway.policy.model import Policy, TargetPolicy
from gateway.store.keys import shard_of

_GATE_BASE = 0.1
_FIRST_ROWS = 16


def target_lanes(settings: Settings, policy: Policy, clock: Clock) -> dict[str, TargetLane]:
    """A lane for each target that takes batch rows."""
    return {
        name: _lane(settings, name, target, clock)
        for name, target in policy.targets.items()
        if target.lanes.batch.max_in_flight > 0
    }


def target_pools(
    policy: Policy,
    lanes: Mapping[str, TargetLane],
    make: Callable[[Sequence[TargetLane]], Pool],
) -> dict[str, Pool]:
    """The pool of each shard. Models served by the same targets share one."""
    pools: dict[tuple[str, ...], Pool] = {}
    by_shard: dict[str, Pool] = {}
    for model, names in policy.models().items():
        able = tuple(name for name in names if name in lanes)
        if not able:
            continue
        if able not in pools:
            pools[able] = make([lanes[name] for name in able])
        by_shard[shard_of(model)] = pools[able]
    return by_shard


def _lane(settings: Settings, name: str, target: TargetPolicy, clock: Clock) -> TargetLane:
    """A provider's limits are unknown at first, so it gets few rows to tell them in its answers."""
    gate = Gate(
        clock,
        base=min(_GATE_BASE, settings.retry_base_seconds),
        patience=settings.retry_cap_seconds,
    )
    limits = target.limits
    budgets = [
        RateBudget(
            settings.rate_minute_seconds, limits.requests_per_minute, limits.tokens_per_minute
        )
        for _ in range(max(1, len(target.api_keys)))
    ]
    pacer = FixedWindow(target.lanes.batch.max_in_flight)
    start = _FIRST_ROWS if target.kind == "openai" else math.inf
    return TargetLane(name, pacer, gate, budgets, clock, start=start)
