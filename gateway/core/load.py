"""How busy a target is with calls that somebody waits for."""

from dataclasses import dataclass
from typing import Final

#: The gap between tokens that is kept where no policy says one, in seconds. An engine that
#: is told to rank calls is told that people come first: there it is shorter.
ITL_TARGET: Final = 0.037
ITL_TARGET_RANKED: Final = 0.0325
#: No such gap is longer, in seconds: nobody would read on.
LONGEST_GAP: Final = 10.0


@dataclass(frozen=True, slots=True)
class TargetLoad:
    """Interactive calls at one target.

    ``calls`` are under way or wait for a place; ``prefilling`` of them are streams without a first
    token. ``ttft_s`` and ``itl_s`` are the means over the calls that ended since the last word;
    None when none did.
    """

    calls: int = 0
    prefilling: int = 0
    ttft_s: float | None = None
    itl_s: float | None = None


@dataclass(frozen=True, slots=True)
class LaneLoad:
    """Offline rows of one dispatcher at one target.

    ``running`` are in flight, ``prefilling`` of them without a first token; it ``wishes`` when a
    row waits that could start if others made room.
    """

    running: int = 0
    prefilling: int = 0
    wishes: bool = False

    @property
    def active(self) -> bool:
        """Whether it uses the target, or would."""
        return self.running > 0 or self.wishes

    @property
    def pushing(self) -> bool:
        """Whether it has prompts there, or would."""
        return self.prefilling > 0 or self.wishes


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn it is at a target: the later ``number`` counts."""

    number: int = 0
    holder: str = ""

    def after(self, other: "Turn") -> bool:
        """Whether it counts before ``other``; of two with one number the lower name does."""
        if self.number != other.number:
            return self.number > other.number
        return self.holder < other.holder
