"""Lanes order from fast to slow."""

import pytest

from gateway.core.lanes import Lane


@pytest.mark.parametrize(
    ("asked", "ceiling", "given"),
    [
        (Lane.INTERACTIVE, Lane.INTERACTIVE, Lane.INTERACTIVE),
        (Lane.INTERACTIVE, Lane.ELASTIC, Lane.ELASTIC),
        (Lane.BATCH, Lane.INTERACTIVE, Lane.BATCH),
        (Lane.ELASTIC, Lane.BATCH, Lane.BATCH),
    ],
)
def test_a_lane_is_never_faster_than_its_ceiling(asked: Lane, ceiling: Lane, given: Lane) -> None:
    """Asking for less is granted, asking for more is not."""
    assert asked.clamped(ceiling) is given


def test_elastic_and_batch_are_offline() -> None:
    """Only interactive work is not offline."""
    assert [lane for lane in Lane if lane.offline] == [Lane.ELASTIC, Lane.BATCH]
