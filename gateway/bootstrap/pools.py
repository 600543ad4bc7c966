"""The dispatcher's lanes, one a target, and its pools, one for each set of targets."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gateway.core.clock import Clock
from gateway.dispatch.carriage import CarryRules, Means
from gateway.dispatch.carrier import Carrier
from gateway.dispatch.carrying import CarryingPool
from gateway.dispatch.lane import TargetLane
from gateway.dispatch.loop import RowPool
from gateway.dispatch.pool import Pool
from gateway.policy.model import Policy
from gateway.policy.target import BatchApiPolicy
from gateway.providers.remote_batches import RemoteBatches, remote_batches
from gateway.routing.router import Router
from gateway.store.keys import shard_of

_GATE_BASE = 0.1
#: Kinds that are paid by the token and have limits nobody may have told us.
_PROVIDERS = frozenset({"openai", "azure"})
_FIRST_ROWS = 16


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
