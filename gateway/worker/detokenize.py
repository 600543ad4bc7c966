"""Tokens to text as they come: whole characters only, and never a part of a stop string."""

import codecs
from collections.abc import Sequence


class Detokenizer:
    """Text of one sequence.

    Bytes of an incomplete character are held back, and so is text that may be the beginning of a
    stop string; it is released as soon as it cannot be one.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self.stopped = False

    def feed(self, piece: bytes) -> str:
        """Text that may be shown after ``piece``; ``stopped`` is set by a whole stop string."""
        return self._release(self._held + self._decoder.decode(piece))

    def finish(self) -> str:
        """What is still held when the sequence ends for another reason.

        Bytes of a character that never became whole are no text.
        """
        rest, self._held = self._held, ""
        return rest

    def _release(self, text: str) -> str:
        found = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self.stopped = True
            self._held = ""
            return text[: min(found)]
        keep = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of ``text`` that is a beginning of ``stop``."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
