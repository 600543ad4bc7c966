"""One request in a simulated engine."""

from dataclasses import dataclass
from enum import Enum
from typing import Any


class State(Enum):
    """Where a sequence is."""

    WAITING = "waiting"
    PREFILL = "prefill"
    DECODE = "decode"
    DONE = "done"


@dataclass(slots=True, eq=False)
class Sequence:
    """``prompt`` tokens in, ``output`` tokens out. A lower ``priority`` is served first.

    ``kept`` tokens were generated before a preemption and are read again with the prompt.
    """

    prompt: int
    output: int
    priority: int = 0
    owner: Any = None
    state: State = State.WAITING
    arrival: int = 0
    read: int = 0
    kept: int = 0
    started: int = 0
    failed: bool = False

    @property
    def total(self) -> int:
        """Tokens in the cache at the end."""
        return self.prompt + self.output

    @property
    def unread(self) -> int:
        """Tokens to read before the next one is generated."""
        return self.prompt + self.kept - self.read
