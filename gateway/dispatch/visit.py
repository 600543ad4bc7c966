"""A row at a target, from its start to its end."""

from typing import TYPE_CHECKING

from gateway.core.rates import RateLimits
from gateway.dispatch.held import HeldRow

if TYPE_CHECKING:
    from gateway.dispatch.lane import TargetLane


class Visit:
    """One row at a target, with the credential it uses. Told how its call goes on.

    ``gap`` is the mean of seconds between pieces of its answer, once that is whole.
    """

    __slots__ = (
        "begun",
        "cost",
        "first_at",
        "gap",
        "key",
        "lane",
        "reserved",
        "row",
        "started",
        "tokens",
    )

    def __init__(
        self, lane: "TargetLane", row: HeldRow, key: int, started: float, reserved: float
    ) -> None:
        self.lane = lane
        self.row = row
        self.key = key
        self.started = started
        self.reserved = reserved
        self.begun = False
        self.cost = 0.0
        self.first_at = started
        self.tokens = 0
        self.gap: float | None = None

    @property
    def target(self) -> str:
        """The target's name in the policy."""
        return self.lane.name

    def head(self, rates: RateLimits | None) -> None:
        """The target began to answer with a success."""
        self.begun = True
        self.lane.took(self, rates)

    def first_token(self) -> None:
        """The target began to generate: the next prompt may go out."""
        self.lane.generates(self)

    def token(self) -> None:
        """The target generated more."""
        self.tokens += 1
        if self.lane.watch:
            self.lane.watch.token(self.row)

    def whole(self, now: float) -> None:
        """The answer is whole."""
        if self.tokens:
            self.gap = (now - self.first_at) / self.tokens
