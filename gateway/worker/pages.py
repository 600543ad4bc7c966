"""Which pages of a device's cache the sequences in their slots have. No torch."""

import numpy as np
import numpy.typing as npt

from gateway.worker.sequence import Sequence, State

PAGE = 64


def pages_for(tokens: int) -> int:
    """Pages that hold so many tokens."""
    return -(-tokens // PAGE)


class PageTable:
    """``rows`` (slots + 1, pages of a context) says where each slot's tokens lie.

    Page 0 and the last row belong to nobody: padding is written there. Pages are taken when they
    are needed, and given back when somebody else needs one; the scheduler admits no more than fits.
    """

    def __init__(self, rows: npt.NDArray[np.int32], pages: int) -> None:
        rows[:] = 0
        self.rows = rows
        self.changed = True
        self._free = list(range(pages - 1, 0, -1))
        self._owners: list[Sequence | None] = [None] * (len(rows) - 1)
        self._held = [0] * (len(rows) - 1)

    @property
    def free(self) -> int:
        """Pages that nobody has."""
        return len(self._free)

    def cover(self, sequence: Sequence, length: int) -> None:
        """Give the sequence room for its first ``length`` tokens. Raises MemoryError."""
        slot = sequence.slot
        if self._owners[slot] is not sequence:
            self._release(slot)
            self._owners[slot] = sequence
        for number in range(self._held[slot], pages_for(length)):
            if not self._free:
                self._reclaim()
            if not self._free:
                raise MemoryError("no page of the cache is left")
            self.rows[slot, number] = self._free.pop()
            self._held[slot] = number + 1
            self.changed = True

    def _reclaim(self) -> None:
        """Take back what sequences held that have ended or lost their slot."""
        for slot, owner in enumerate(self._owners):
            if owner is not None and (owner.state is State.DONE or owner.slot != slot):
                self._release(slot)

    def _release(self, slot: int) -> None:
        self._free += self.rows[slot, : self._held[slot]].tolist()
        self._held[slot], self._owners[slot] = 0, None
