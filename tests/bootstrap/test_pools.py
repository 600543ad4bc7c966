"""Lanes of targets and pools of models."""

from collections.abc import Sequence
from pathlib import Path

from gateway.bootstrap.pools import target_lanes, target_pools
from gateway.core.clock import SystemClock
from gateway.core.settings import Settings
from gateway.dispatch.lane import TargetLane
from gateway.dispatch.load import InteractiveLoad
from gateway.policy.model import Policy
from gateway.store.keys import shard_of

_POLICY = {
    "targets": {
        "a": {"base_url": "http://127.0.0.1:1/v1", "models": ["m", "n"], "kind": "vllm"},
        "b": {
            "base_url": "http://127.0.0.1:2/v1",
            "models": ["m", "o"],
            "lanes": {"batch": {"max_in_flight": 3}},
            "limits": {"requests_per_minute": 30},
        },
        "c": {
            "base_url": "http://127.0.0.1:3/v1",
            "models": ["p", "o", "q"],
            "lanes": {"batch": {"max_in_flight": 0}},
        },
        "d": {"base_url": "http://127.0.0.1:4/v1", "models": ["q", "r"]},
    }
}


def test_lanes_and_pools_of_a_policy(tmp_path: Path) -> None:
    """A lane per target that takes batch rows; models of the same targets share one pool."""
    policy = Policy.model_validate(_POLICY)
    lanes = target_lanes(
        Settings(data_dir=tmp_path), policy, InteractiveLoad(SystemClock()), SystemClock()
    )
    made: list[list[str]] = []

    def make(of: Sequence[TargetLane]) -> object:
        made.append([lane.name for lane in of])
        return object()

    pools = target_pools(policy, lanes, {}, make)  # type: ignore[arg-type]  # only counted
    assert made == [["a", "b"], ["a"], ["b"], ["d"]]
    assert pools[shard_of("q")] is pools[shard_of("r")]
    assert pools[shard_of("o")] is not pools[shard_of("m")]
    assert shard_of("p") not in pools


def test_what_a_lane_lets_in_at_first(tmp_path: Path) -> None:
    """An engine of ours is filled at once; a provider gets 16 rows, or what its limits allow."""
    policy = Policy.model_validate(_POLICY)
    lanes = target_lanes(
        Settings(data_dir=tmp_path), policy, InteractiveLoad(SystemClock()), SystemClock()
    )
    assert [lanes[name].window() for name in ("a", "b", "d")] == [64, 1, 16]
