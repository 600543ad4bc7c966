"""How many rows run at one target, and how many more to lease for it."""

from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol

from gateway.core.load import TargetLoad
from gateway.core.targets import EngineLoad
from gateway.pacing.share import WHOLE, Share


@dataclass(frozen=True, slots=True)
class CapsNow:
    """Caps as they are now, of all dispatchers together; ``ours`` is our part of ``rows``.

    ``prompts`` may be without a first token; None: any number. ``ttft`` and ``gap`` are those of
    interactive calls here, in seconds; None: not measured.
    """

    rows: int
    ours: int
    prompts: int | None = None
    ttft: float | None = None
    gap: float | None = None

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


#: A row that was taken back so often is let go on.
MOST_TAKEN_BACK: Final = 6


class Pacer(Protocol):
    """The number of rows at a target. An adaptive pacer gives a number that moves."""

    def window(self) -> int:
        """Rows that may be in flight now."""

    def places(self, running: int, prefilling: int, tokens: int = 0) -> int:
        """How many more rows may start now, at least 0.

        ``prefilling`` of the ``running`` rows have not produced a token yet; their prompts have
        about ``tokens`` tokens.
        """

    def caps(self) -> CapsNow:
        """What to tell an operator."""

    def started(self) -> None:
        """A row starts."""

    def makes_way(self, waited: float, tokens: int, ahead: int) -> bool:
        """Whether a row without a token is to be taken back, now that an interactive call came."""

    def first_token(self, waited: float, tokens: int, running: int) -> None:
        """A prompt of ``tokens`` waited so many seconds; ``running`` rows are in flight."""

    def heard(self, load: TargetLoad) -> None:
        """What a gateway says of interactive calls here."""

    def told(self, load: EngineLoad, running: int) -> None:
        """What the engine says of itself, with ``running`` of our rows in flight."""

    def ended(self, seconds: float, gap: float | None) -> None:
        """A row was in flight for so long, with ``gap`` seconds between its tokens, if known."""


class FixedWindow:
    """Keeps ``size`` rows in flight: each row that ends lets the next one start at once.

    With several dispatchers it is their window together, of which ``share`` is ours.
    """

    def __init__(self, size: int, share: Share = WHOLE) -> None:
        self._size = size
        self._share = share

    def window(self) -> int:
        """Rows that may be in flight now."""
        return self._share.window(self._size)

    def places(self, running: int, prefilling: int, tokens: int = 0) -> int:
        """The free places of the window; the phase of a row makes no difference."""
        del prefilling, tokens
        return max(0, self._share.rows(self._size, running))

    def caps(self) -> CapsNow:
        """The window, and our part of it."""
        return CapsNow(self._size, self.window())

    def started(self) -> None:
        """Changes nothing."""

    def makes_way(self, waited: float, tokens: int, ahead: int) -> bool:
        """No row does."""
        del waited, tokens, ahead
        return False

    def first_token(self, waited: float, tokens: int, running: int) -> None:
        """Changes nothing."""

    def heard(self, load: TargetLoad) -> None:
        """Changes nothing."""

    def told(self, load: EngineLoad, running: int) -> None:
        """Changes nothing."""

    def ended(self, seconds: float, gap: float | None) -> None:
        """Changes nothing."""


def rows_to_lease(window: int, held: int) -> int:
    """Rows worth asking for when ``held`` are running or waiting here; 0: not worth a trip.

    A quarter of the window is kept waiting locally, so that a place is refilled without a trip to
    the queue, and no more than that, so that fairness and deadlines stay the queue's business.
    """
    reserve = window // 4
    if held >= window + (reserve + 1) // 2:
        return 0
    return window + reserve - held
