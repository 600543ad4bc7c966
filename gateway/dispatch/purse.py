"""What late work may cost at one target, and the way to more of it."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.core.clock import Clock
from gateway.core.errors import StoreUnavailable
from gateway.core.loops import keep_doing
from gateway.core.price import Price, millionths
from gateway.core.usage import Usage
from gateway.store.late_cost import LateCost

log = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 1.0
_LAST_SECONDS: Final = 0.5
_PARTS: Final = 20
_ROWS_AHEAD: Final = 4
_MILLION: Final = 1_000_000
_CRUMB: Final = 1e-9


@dataclass(frozen=True, slots=True)
class CostCap:
    """``most`` in each window of so many ``seconds``, which are counted from 1970 on (UTC)."""

    price: Price
    most: float
    seconds: int


class Purse:
    """This dispatcher's money for one target.

    A row is reserved with what its estimated tokens cost at most, and paid with what it used. One
    whose answer was lost after it had begun is paid as reserved: who sells it may bill it.
    """

    def __init__(self, cap: CostCap) -> None:
        self.cap = cap
        self.asks: Callable[[], None] = lambda: None
        self.total = 0.0
        self.exhausted = False
        self.granted = 0.0
        self._spent = 0.0
        self._reserved = 0.0
        self._missed = 0.0

    @property
    def held(self) -> float:
        """Spent, or reserved for rows in flight."""
        return self._spent + self._reserved

    def open(self) -> bool:
        """Whether any row may start; if not, more is asked for."""
        if self.held + _CRUMB < self.granted:
            return True
        self._ask()
        return False

    def affords(self, tokens: float) -> bool:
        """Whether a row of about so many tokens may start; if not, more is asked for."""
        cost = self.cap.price.most(tokens)
        if self.held + cost <= self.granted + _CRUMB:
            return True
        self._missed = max(self._missed, cost)
        self._ask()
        return False

    def reserve(self, tokens: float) -> float:
        """A row of about so many tokens starts; what is reserved for it."""
        cost = self.cap.price.most(tokens)
        self._reserved += cost
        return cost

    def paid(self, reserved: float, usage: Usage) -> None:
        """The row's answer is whole."""
        self._reserved -= reserved
        self._spent += self.cap.price.of(usage)

    def dropped(self, reserved: float, *, begun: bool) -> None:
        """The row has no answer; ``begun``: the target had started to give one."""
        self._reserved -= reserved
        self._spent += reserved if begun else 0.0

    def wanted(self, *, late: bool) -> float:
        """What to hold: with work that is ``late`` some more than is used already."""
        if not late:
            self._missed = 0.0
            return self.held
        return self.held + max(self.cap.most / _PARTS, _ROWS_AHEAD * self._missed)

    def grant(self, mine: float, total: float, *, less: bool = False) -> None:
        """So much may be spent in this window; all dispatchers hold ``total``.

        It may be ``less`` than was wanted.
        """
        self.granted, self.total = mine, total
        short = self.held + max(self._missed, 2 * _CRUMB) > mine + _CRUMB
        self.exhausted = less and short

    def renew(self) -> None:
        """Another window begins; what is in flight belongs to it."""
        self._spent = self.granted = self.total = self._missed = 0.0
        self.exhausted = False

    def _ask(self) -> None:
        if not self.exhausted:
            self.asks()


class PurseKeeper:
    """Fills the purses while work is late, and gives back what they do not need.

    ``called`` is told which target may have rows now.
    """

    def __init__(
        self,
        purses: Mapping[str, Purse],
        late: Callable[[str], bool],
        costs: LateCost,
        called: Callable[[str], None],
        clock: Clock,
    ) -> None:
        self._purses = purses
        self._late = late
        self._costs = costs
        self._called = called
        self._clock = clock
        self._windows: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self.asked = asyncio.Event()
        for purse in purses.values():
            purse.asks = self.asked.set

    async def run(self) -> None:
        """Until cancelled; then what is not needed is given back."""
        if not self._purses:
            return
        try:
            await keep_doing(self.step, "cost caps", every=_EVERY_SECONDS, wake=self.asked)
        finally:
            with contextlib.suppress(StoreUnavailable, TimeoutError):
                async with asyncio.timeout(_LAST_SECONDS):
                    await self._give_back()

    async def step(self) -> None:
        """Look once at each purse."""
        for name, purse in self._purses.items():
            window = int(self._clock.now() // purse.cap.seconds)
            if self._windows.setdefault(name, window) != window:
                self._windows[name] = window
                purse.renew()
            await self._fill(name, purse, window)

    async def _give_back(self) -> None:
        for name, window in self._windows.items():
            purse = self._purses[name]
            held = millionths(purse.held)
            named = f"{purse.cap.seconds}-{window}"
            await self._costs.hold(name, named, held, used=held, cap=0)

    async def _fill(self, name: str, purse: Purse, window: int) -> None:
        before, wanted = purse.granted, millionths(purse.wanted(late=self._late(name)))
        held = await self._costs.hold(
            name,
            f"{purse.cap.seconds}-{window}",
            wanted,
            used=millionths(purse.held),
            cap=int(purse.cap.most * _MILLION),
        )
        less = held.mine < wanted
        purse.grant(held.mine / _MILLION, held.total / _MILLION, less=less)
        if purse.granted > before:
            self._called(name)
        if purse.exhausted and self._told.get(name) != window:
            self._told[name] = window
            left = purse.cap.seconds * (window + 1) - self._clock.now()
            log.warning(
                "%s: late work has used up its cost cap of %g; no more for %.0f s",
                name,
                purse.cap.most,
                left,
            )
