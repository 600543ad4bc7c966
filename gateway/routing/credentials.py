"""Which of our keys at a target a call uses, and which are left alone for a while."""

import logging
from collections.abc import Callable

from gateway.core.errors import (
    INSUFFICIENT_QUOTA,
    UpstreamCredential,
    UpstreamError,
    UpstreamThrottled,
)

log = logging.getLogger(__name__)

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_TOO_MANY = 429
Parked = Callable[[str, int, float], None]


class Credentials:
    """The keys of one target by their place in the policy; a target without one has one place.

    A key that is refused or throttled is parked: as long as told, else for a pause that doubles.
    When all are, one whose time was not told is tried all the same. ``parked`` hears of what was
    told, with the target's name, the place and the seconds. After ``parked_until`` none is. The
    operator is told once of a key that is refused, and once when it is accepted again.
    """

    __slots__ = ("_pauses", "_refused", "_target", "_told", "_until", "parked", "parked_until")

    def __init__(self, target: str, count: int) -> None:
        self._target = target
        self._until = [0.0] * max(count, 1)
        self._told = [False] * max(count, 1)
        self._pauses = [_FIRST_PAUSE] * max(count, 1)
        self._refused: dict[int, str] = {}
        self.parked: Parked | None = None
        self.parked_until = 0.0

    def __len__(self) -> int:
        return len(self._until)

    def wait(self, now: float) -> float:
        """Seconds until one of the keys may be used; 0: now."""
        soonest = min(self._until)
        if soonest <= now or not all(self._told):
            return 0.0
        return soonest - now

    def pick(self, now: float) -> int:
        """The first key that may be used; when none may, the one that may soonest."""
        if self._until[0] <= now:
            return 0
        for place, until in enumerate(self._until):
            if until <= now:
                return place
        untold = [place for place, told in enumerate(self._told) if not told]
        return min(untold or range(len(self)), key=self._until.__getitem__)

    def worked(self, place: int) -> None:
        """A call with the key was answered."""
        self._pauses[place] = _FIRST_PAUSE
        if self._refused and self._refused.pop(place, ""):
            log.info("target %s accepts %s again", self._target, self._named(place))

    @property
    def trouble(self) -> str | None:
        """In words, which keys are refused; None: none is."""
        return "; ".join(self._refused[place] for place in sorted(self._refused)) or None

    def _named(self, place: int) -> str:
        return "its key" if len(self) == 1 else f"key {place + 1} of {len(self)}"

    def _note(self, place: int, error: UpstreamError) -> None:
        """Tell the operator of a key that is refused or used up, the first time."""
        quota = error.code == INSUFFICIENT_QUOTA
        if place in self._refused or not (quota or isinstance(error, UpstreamCredential)):
            return
        what = "the quota is used up" if quota else "refused"
        said = f"{self._named(place)}: {what}, status {error.status}"
        self._refused[place] = said
        log.warning("target %s, %s", self._target, said)

    def refused(self, place: int, error: UpstreamError, now: float) -> bool:
        """A call with the key failed so. Whether another key may be tried at once.

        A throttle that tells no time parks a key only when there are others.
        """
        if not isinstance(error, UpstreamCredential | UpstreamThrottled):
            return False
        self._note(place, error)
        seconds = error.retry_after
        if isinstance(error, UpstreamThrottled) and error.code != INSUFFICIENT_QUOTA:
            if error.status != _TOO_MANY:
                self._park_all(seconds, now)
                return False
            if seconds is None and len(self) == 1:
                return False
        if seconds is None:
            self._until[place] = now + self._pauses[place]
            self.parked_until = max(self._until)
            self._told[place] = False
            self._pauses[place] = min(2 * self._pauses[place], _LONGEST_PAUSE)
        else:
            self._park_and_tell(place, seconds, now)
        return min(self._until) <= now

    def _park_all(self, seconds: float | None, now: float) -> None:
        """It is the target that has no room, whatever the key."""
        for place in range(len(self) if seconds else 0):
            self._park_and_tell(place, seconds or 0.0, now)

    def _park_and_tell(self, place: int, seconds: float, now: float) -> None:
        self.park(place, seconds, now)
        if self.parked is not None:
            self.parked(self._target, place, seconds)

    def park(self, place: int, seconds: float, now: float) -> None:
        """Leave the key alone for as long as was told. A place that is none is no key of ours."""
        if not 0 <= place < len(self):
            return
        self._until[place] = max(self._until[place], now + seconds)
        self._told[place] = True
        self.parked_until = max(self._until)
