"""Which part of a target's caps is ours, when several dispatchers send rows to it."""

from typing import Protocol


class Share(Protocol):
    """Asked for each row; ``cap`` is always that of all dispatchers together."""

    def window(self, cap: int) -> int:
        """Our part of ``cap`` rows in flight: worth holding rows for."""

    def rows(self, cap: int, running: int) -> int:
        """How many more rows may be in flight, beside our ``running`` ones."""

    def prompts(self, cap: int, prefilling: int) -> int:
        """How many more rows may be without a first token, beside our ``prefilling`` ones."""

    def tokens(self, cap: int) -> float:
        """Our part of ``cap`` prompt tokens."""

    def beside(self) -> int:
        """Rows that the others have in flight."""


class Whole:
    """There is nobody else."""

    def window(self, cap: int) -> int:
        """All of it."""
        return cap

    def rows(self, cap: int, running: int) -> int:
        """What is left of it."""
        return cap - running

    def prompts(self, cap: int, prefilling: int) -> int:
        """What is left of it."""
        return cap - prefilling

    def tokens(self, cap: int) -> float:
        """All of it."""
        return cap

    def beside(self) -> int:
        """None."""
        return 0


WHOLE = Whole()
