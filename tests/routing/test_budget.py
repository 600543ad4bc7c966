"""The share of retries."""

from gateway.routing.budget import RetryBudget


def test_a_reserve_then_the_share() -> None:
    """Ten retries are free; then one for every five calls at a fifth."""
    budget = RetryBudget(0.2)
    assert [budget.take() for _ in range(11)] == [True] * 10 + [False]
    allowed = 0
    for _ in range(100):
        budget.called()
        allowed += budget.take()
    assert 19 <= allowed <= 20


def test_the_reserve_does_not_grow() -> None:
    """Quiet times do not pay for a storm."""
    budget = RetryBudget(1.0)
    for _ in range(1000):
        budget.called()
    assert sum(budget.take() for _ in range(1000)) == 10
