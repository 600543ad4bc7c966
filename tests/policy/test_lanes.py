"""The batch lane of a target, as written and as meant."""

import pytest
from pydantic import ValidationError

from gateway.policy.target import TargetPolicy


def _target(**given: object) -> TargetPolicy:
    return TargetPolicy.model_validate({"base_url": "http://h/v1", "models": ["m"], **given})


def test_batch_auto_is_one_word() -> None:
    """``batch: auto`` finds the number of rows, up to 512 or what the policy says."""
    assert _target(lanes={"batch": "auto"}).lanes.batch.auto
    assert _target(lanes={"batch": "auto"}).lanes.batch.max_in_flight == 512
    most = _target(lanes={"batch": {"auto": True, "max_in_flight": 100}}).lanes.batch.max_in_flight
    assert most == 100
    assert not _target().lanes.batch.auto
    assert _target().lanes.batch.max_in_flight == 64


@pytest.mark.parametrize(
    ("given", "shared"),
    [
        ({}, True),
        ({"base_url": "https://api.example.com/v1"}, False),
        ({"base_url": "https://h/v1", "kind": "vllm"}, True),
        ({"base_url": "https://h/v1", "lanes": {"batch": {"shared": True}}}, True),
        ({"lanes": {"batch": {"shared": False}}}, False),
    ],
)
def test_which_targets_are_one_shared_engine(given: dict[str, object], shared: bool) -> None:
    """An engine is shared unless it looks like a provider; the policy has the last word."""
    assert _target(**given).shared is shared


def test_people_come_first_where_the_engine_ranks_calls() -> None:
    """Then the gap that is kept is shorter; the policy has the last word."""
    assert _target().itl_target == 0.037
    assert _target(priority=False).itl_target == 0.037
    assert _target(priority=True).itl_target == 0.0325
    said = {"batch": {"auto": True, "itl_target": "50ms"}}
    assert _target(priority=True, lanes=said).itl_target == 0.05


def test_an_unknown_word_is_refused() -> None:
    """Only ``auto`` stands for the mapping."""
    with pytest.raises(ValidationError):
        _target(lanes={"batch": "fast"})
