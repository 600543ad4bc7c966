"""Whether Redis still has what it had: everything, all but its last second, or nothing.

Redis that lost everything has no epoch; one gets its name at the end of a repair, and only if
nothing was lost again since that began. Another server process may have lost the last second.
"""

from dataclasses import dataclass
from typing import Protocol


class Epochs(Protocol):
    """What names the content of Redis; batches and jobs have one each."""

    async def epoch(self) -> str | None:
        """The epoch; None when everything was lost and is not put back yet."""

    async def begin_epoch(self) -> str:
        """Announce that all is about to be put back."""

    async def end_epoch(self, epoch: str) -> bool:
        """All is put back. False: everything was lost once more meanwhile."""

    async def server(self) -> str:
        """Names the server process."""


@dataclass(frozen=True, slots=True)
class Loss:
    """``some``: anything may be missing or behind; ``all``: nothing is there."""

    some: bool
    all: bool


class Losses:
    """One repairer's view. Between ``begin`` and ``end`` it looks at everything."""

    def __init__(self, epochs: Epochs) -> None:
        self._epochs = epochs
        self._seen: tuple[str | None, str] = (None, "")
        self._repair: tuple[str, str, bool] = ("", "", False)

    async def noticed(self) -> bool:
        """Whether something may have been lost since the last repair ended."""
        return self._seen[0] is None or await self._now() != self._seen

    async def begin(self) -> Loss:
        """What may be missing now."""
        epoch, server = await self._now()
        loss = Loss(epoch is None or (epoch, server) != self._seen, epoch is None)
        self._repair = (epoch or await self._epochs.begin_epoch(), server, loss.all)
        return loss

    async def end(self) -> None:
        """All that was missing is put back."""
        epoch, server, lost = self._repair
        whole = not lost or await self._epochs.end_epoch(epoch)
        self._seen = (epoch, server) if whole else (None, "")

    async def _now(self) -> tuple[str | None, str]:
        return await self._epochs.epoch(), await self._epochs.server()
