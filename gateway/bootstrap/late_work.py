"""What holds late work within the policy's cost caps, put together."""

from collections.abc import Callable, Mapping

from gateway.core.clock import Clock
from gateway.dispatch.lane import TargetLane
from gateway.dispatch.purse import PurseKeeper
from gateway.policy.model import Policy
from gateway.store.client import StoreClient
from gateway.store.keys import shard_of
from gateway.store.late_cost import LateCost


def purse_keeper(
    lanes: Mapping[str, TargetLane], redis: StoreClient, dispatcher: str, clock: Clock
) -> PurseKeeper:
    """Fills the purses of ``lanes``."""
    purses = {name: lane.purse for name, lane in lanes.items() if lane.purse is not None}
    return PurseKeeper(
        purses,
        lambda name: lanes[name].admits(),
        LateCost(redis, dispatcher),
        lambda name: lanes[name].call(),
        clock,
    )


def capped_shards(policy: Policy, lanes: Mapping[str, TargetLane]) -> Callable[[str], bool]:
    """Whether a target that is there for the late work of a shard has used up its cost cap."""
    purses = [
        ({shard_of(model) for model in policy.targets[name].models}, lane.purse)
        for name, lane in lanes.items()
        if lane.purse is not None
    ]
    return lambda shard: any(shard in shards and purse.exhausted for shards, purse in purses)
