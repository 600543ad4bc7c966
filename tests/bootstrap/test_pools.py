"""Lanes of targets and pools of models."""

from collections.abc import Sequence
from pathlib import Path

from gateway.bootstrap.lanes import Lanes
from gateway.bootstrap.pools import target_pools
from gateway.core.clock import SystemClock
from gateway.core.settings import Settings
from gateway.dispatch.fleet import Fleet
from gateway.dispatch.hurry import Hurry
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
    policy = Policy.model_validate({**_POLICY, "models": {"m": {"aliases": ["x"]}}})
    clock = SystemClock()
    load, fleet = InteractiveLoad(clock), Fleet("me", clock)
    lanes = Lanes(Settings(data_dir=tmp_path), load, Hurry(), fleet, clock).of(policy)
    made: list[list[str]] = []

    def make(of: Sequence[TargetLane]) -> object:
        made.append([lane.name for lane in of])
        return object()

    pools = target_pools(policy, lanes, {}, make)  # type: ignore[arg-type]  # only counted
    assert made == [["a", "b"], ["a"], ["b"], ["d"]]
    assert pools[shard_of("q")] is pools[shard_of("r")]
    assert pools[shard_of("o")] is not pools[shard_of("m")]
    assert pools[shard_of("x")] is pools[shard_of("m")]
    assert shard_of("p") not in pools
