"""The dispatcher's lanes, one a target, and its pools, one for each set of targets."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gateway.core.clock import Clock
from gateway.core.settings import Settings
from gateway.dispatch.carriage import CarryRules, Means
from gateway.dispatch.carrier import Carrier
from gateway.dispatch.carrying import CarryingPool
from gateway.dispatch.gate import Gate
from gateway.dispatch.lane import TargetLane
from gateway.dispatch.load import InteractiveLoad
from gateway.dispatch.loop import RowPool
from gateway.dispatch.pool import Pool
from gateway.dispatch.rate import RateBudget
from gateway.pacing.shared import Caps, SharedEngine
from gateway.pacing.window import FixedWindow
from gateway.policy.lanes import BatchLane
from gateway.policy.model import Policy
from gateway.policy.target import BatchApiPolicy, TargetPolicy
from gateway.providers.remote_batches import RemoteBatches, remote_batches
from gateway.routing.router import Router
from gateway.store.keys import shard_of

_GATE_BASE = 0.1
#: Kinds that are paid by the token and have limits nobody may have told us.
_PROVIDERS = frozenset({"openai", "azure"})
_FIRST_ROWS = 16


def target_lanes(
    settings: Settings, policy: Policy, load: InteractiveLoad, clock: Clock
) -> dict[str, TargetLane]:
    """A lane for each target that takes batch rows; it makes way for interactive ``load``."""
    return {
        name: _lane(settings, name, target, load, clock)
        for name, target in policy.targets.items()
        if target.lanes.batch.max_in_flight > 0 and target.batch_api is None
    }


def target_carriers(
    policy: Policy,
    router: Router,
    clock: Clock,
    means: Callable[[RemoteBatches, CarryRules], Means],
) -> dict[str, Carrier]:
    """A carrier for each target whose Batch API is used."""
    return {
        name: Carrier(
            means(remote_batches(name, target, clock), _carry_rules(target.batch_api)),
            partial(router.route, name),
        )
        for name, target in policy.targets.items()
        if target.batch_api is not None
    }


def target_pools(
    policy: Policy,
    lanes: Mapping[str, TargetLane],
    carriers: Mapping[str, Carrier],
    make: Callable[[Sequence[TargetLane]], Pool],
) -> dict[str, RowPool]:
    """The pool of each shard. Models served by the same targets share one.

    Of several Batch APIs a model uses the first.
    """
    pools: dict[tuple[str, ...], RowPool] = {}
    by_shard: dict[str, RowPool] = {}
    for model, names in policy.served().items():
        able = tuple(name for name in names if name in lanes or name in carriers)
        if not able:
            continue
        if able not in pools:
            direct = [lanes[name] for name in able if name in lanes]
            carrier = next((carriers[name] for name in able if name in carriers), None)
            if carrier is None:
                pools[able] = make(direct)
            else:
                pools[able] = CarryingPool(carrier, make(direct) if direct else None)
        by_shard[shard_of(model)] = pools[able]
    return by_shard


def _carry_rules(policy: BatchApiPolicy) -> CarryRules:
    return CarryRules(
        window=policy.window,
        slack=policy.min_slack,
        collect=policy.collect,
        poll=policy.poll,
        rows=policy.max_rows,
        batches=policy.max_batches,
    )


def _lane(
    settings: Settings, name: str, target: TargetPolicy, load: InteractiveLoad, clock: Clock
) -> TargetLane:
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
    start = _FIRST_ROWS if target.kind in _PROVIDERS else math.inf
    if not target.shared:
        pacer = FixedWindow(target.lanes.batch.max_in_flight)
        return TargetLane(name, pacer, gate, budgets, clock, start=start)
    shared = SharedEngine(_caps(target.lanes.batch), partial(load.at, name), clock)
    lane = TargetLane(name, shared, gate, budgets, clock, start=start)
    load.on_arrival(name, lane.make_way)
    load.on_gap(name, shared.gap)
    return lane


def _caps(batch: BatchLane) -> Caps:
    most = batch.max_in_flight
    return Caps(
        floor=batch.floor if batch.auto else most,
        start=batch.start if batch.auto else most,
        ceiling=most,
        prefill_busy=batch.prefill,
        prefill_idle=batch.prefill_idle,
        itl_target=batch.itl_target,
    )
