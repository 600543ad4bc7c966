"""What one dispatcher may have in flight at a target that others use too.

Rows: each takes an equal part. Prompts: each takes what divides evenly, and the rest is for the one
whose turn it is. A turn lasts 50 ms and until its prompts are read; then it goes to the next who
has rows that wait. Beyond that nobody starts what the others' word leaves no room for.
"""

from collections.abc import Callable
from typing import Final

from gateway.core.clock import Clock
from gateway.core.load import LaneLoad, Turn

_TURN_SECONDS: Final = 0.05
_ENTRY_SECONDS: Final = 0.05


class Part:
    """One target's ``Share``. ``speak`` has the word of now published at once.

    ``is_open`` says whether it is known who else is there. ``others`` are the loads of all who are,
    by name, also of those who do not use the target.
    """

    def __init__(
        self, me: str, clock: Clock, speak: Callable[[], None], is_open: Callable[[], bool]
    ) -> None:
        self._me = me
        self._clock = clock
        self._speak = speak
        self._open = is_open
        self.others: dict[str, LaneLoad] = {}
        self.turn = Turn()
        self._since = 0.0
        self._kept = 0
        self._known: float | None = None

    def window(self, cap: int) -> int:
        """Our part of ``cap`` rows, of which one is always worth holding."""
        return max(1, self._rows(cap)) if self.others else cap

    def rows(self, cap: int, running: int) -> int:
        """How many more may be in flight; none until the others heard that we begin."""
        if not self._open():
            return 0
        if not self.others:
            return cap - running
        if not running and not self._entered():
            return 0
        return min(self._rows(cap) - running, cap - self.beside() - running)

    def prompts(self, cap: int, prefilling: int) -> int:
        """How many more may be without a first token."""
        pushing = self._pushing()
        if not pushing:
            return cap - prefilling
        count = len(pushing) + 1
        self._kept, rest = divmod(cap, count)
        self._settle(prefilling)
        mine = self._kept + (rest if self._ours(pushing) else 0)
        left = cap - sum(load.prefilling for load in self.others.values())
        return min(mine, left) - prefilling

    def tokens(self, cap: int) -> float:
        """Our part of ``cap`` prompt tokens."""
        return cap / (len(self._pushing()) + 1)

    def beside(self) -> int:
        """Rows that the others have in flight."""
        return sum(load.running for load in self.others.values())

    def said(self, load: LaneLoad) -> None:
        """The others were told of ``load``."""
        if not load.active:
            self._known = None
        elif self._known is None:
            self._known = self._clock.monotonic()

    def heard(self, turn: Turn) -> bool:
        """Somebody says whose turn it is; whether that is news."""
        if not turn.after(self.turn):
            return False
        self._take(turn)
        return True

    def look(self, mine: LaneLoad) -> None:
        """Somebody else is here: take the turn or pass it on, whether or not a row asks."""
        if mine.pushing:
            self._settle(mine.prefilling)
        elif self.turn.holder == self._me:
            self._pass(self._pushing())

    @property
    def crowded(self) -> bool:
        """Whether somebody else uses the target, or would."""
        return any(load.active for load in self.others.values())

    def _rows(self, cap: int) -> int:
        names = [name for name, load in self.others.items() if load.active]
        if not names:
            return cap
        each, rest = divmod(cap, len(names) + 1)
        if not each:
            return cap if self.turn.holder == self._me else 0
        return each + (sum(name < self._me for name in names) < rest)

    def _entered(self) -> bool:
        if self._known is None:
            self._speak()
            return False
        return self._clock.monotonic() - self._known >= _ENTRY_SECONDS

    def _pushing(self) -> list[str]:
        return [name for name, load in self.others.items() if load.pushing]

    def _settle(self, prefilling: int) -> None:
        """We push: take a turn that nobody has, pass on ours when it is over."""
        pushing = self._pushing()
        if self.turn.holder not in {self._me, *pushing}:
            if all(self._me < name for name in pushing):
                self._take(Turn(self.turn.number + 1, self._me))
                self._speak()
        elif self.turn.holder == self._me and self._over() and prefilling <= self._kept:
            self._pass(pushing)

    def _ours(self, pushing: list[str]) -> bool:
        """Whether the rest is ours to use now; after the turn's time it is left to the next."""
        mine = self.turn.holder == self._me
        wished = any(self.others[name].wishes for name in pushing)
        return mine and not (wished and self._over())

    def _pass(self, pushing: list[str]) -> None:
        able = sorted(name for name in pushing if self.others[name].wishes)
        if able:
            following = next((name for name in able if name > self._me), able[0])
            self._take(Turn(self.turn.number + 1, following))
            self._speak()

    def _take(self, turn: Turn) -> None:
        self.turn = turn
        self._since = self._clock.monotonic()

    def _over(self) -> bool:
        return self._clock.monotonic() - self._since >= _TURN_SECONDS
