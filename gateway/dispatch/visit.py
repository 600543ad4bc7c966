"""A row at a target, from its start to its end."""

from typing import Any, Generic, Protocol, TypeVar

from gateway.core.rates import RateLimits
from gateway.dispatch.held import HeldRow
from gateway.pacing.watch import EngineWatch


class Place(Protocol):
    """The target where a row is: what hears how its call goes on."""

    name: str
    watch: EngineWatch | None

    def took(self, visit: Any, rates: RateLimits | None) -> None:
        """The target takes a row: its answer has begun."""

    def generates(self, visit: Any) -> None:
        """The row has its first token."""


SomePlace = TypeVar("SomePlace", bound=Place)


class RowVisit(Generic[SomePlace]):
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
        self, lane: SomePlace, row: HeldRow, key: int, started: float, reserved: float
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
