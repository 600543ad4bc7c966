"""Several gateways never do more at a target than one would."""

from pathlib import Path

import pytest

from gateway.bootstrap.share import Share, share_of
from gateway.core.errors import ConfigError
from gateway.policy.model import Policy


def _policy(**lanes: object) -> Policy:
    target = {"base_url": "http://127.0.0.1:1/v1", "models": ["m"], "lanes": lanes}
    return Policy.model_validate({"targets": {"up": target}})


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_parts_are_the_whole(count: int) -> None:
    """Places and lines add up; batch belongs to dispatchers and stays as it is."""
    policy = _policy(
        interactive={"max_in_flight": 64, "max_queue": 7},
        elastic={"max_in_flight": 0},
        batch={"max_in_flight": 9},
    )
    parts = [share_of(policy, index, count).targets["up"].lanes for index in range(count)]
    assert sum(p.interactive.max_in_flight for p in parts) == 64
    assert max(p.interactive.max_in_flight for p in parts) <= -(-64 // count)
    assert sum(p.interactive.max_queue for p in parts) == 7
    assert {p.elastic.max_in_flight for p in parts} == {0}
    assert {p.batch.max_in_flight for p in parts} == {9}


def test_a_part_of_nothing_is_refused() -> None:
    """A process without places would let its callers wait for ever."""
    with pytest.raises(ConfigError, match="4 workers cannot share the 3 interactive calls"):
        share_of(_policy(interactive={"max_in_flight": 3}), 0, 4)


def test_a_share_is_a_value() -> None:
    """It says which of how many, and where they meet."""
    assert Share(0, 2, Path("a")) == Share(0, 2, Path("a"))
