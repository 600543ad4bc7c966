"""The value that says where a call goes."""

import dataclasses

import pytest

from gateway.core.targets import Timeouts
from gateway.policy.model import RetryPolicy
from gateway.routing.plan import Route


def test_a_route_does_not_change() -> None:
    """A route is a frozen value."""
    route = Route("t", "m", "vllm", Timeouts(), RetryPolicy(), sends_priority=False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        route.target = "other"  # type: ignore[misc]
