"""The value that says where a call goes."""

import dataclasses

import pytest

from tests.support.routes import a_route


def test_a_route_does_not_change() -> None:
    """A route is a frozen value."""
    route = a_route()
    with pytest.raises(dataclasses.FrozenInstanceError):
        route.target = "other"  # type: ignore[misc]
