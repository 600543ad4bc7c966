"""An engine in real time: its steps take as long as they say."""

import asyncio
from typing import Protocol

from gateway.simulator.engine import Engine, Step
from gateway.simulator.sequence import Sequence

# Of a stall of this process, what is caught up with; the rest is lost.
_MOST_LATE = 0.02


class Listener(Protocol):
    """The owner of a sequence in real time."""

    def token(self) -> None:
        """One more token."""

    def end(self, *, failed: bool) -> None:
        """The last one was said, or, ``failed``, there is no room for the sequence."""


class Clockwork:
    """Runs ``engine``, ``scale`` times as fast as its profile says."""

    def __init__(self, engine: Engine, scale: float) -> None:
        self.engine = engine
        self.prompt_tokens = 0
        self.output_tokens = 0
        self._scale = scale
        self._work = asyncio.Event()

    def add(self, sequence: Sequence) -> None:
        """Take a sequence whose owner is a Listener."""
        self.engine.add(sequence)
        self._work.set()

    def cancel(self, sequence: Sequence) -> None:
        """Its reader has left; its owner hears nothing more."""
        self.engine.cancel(sequence)

    async def run(self) -> None:
        """Step for ever; waits while there is nothing to do."""
        now = asyncio.get_running_loop().time
        due = now()
        while True:
            if self.engine.idle:
                self._work.clear()
                await self._work.wait()
                due = now()
            step = self.engine.step()
            due = max(due, now() - _MOST_LATE) + step.seconds / self._scale
            await asyncio.sleep(max(0.0, due - now()))
            self._deliver(step)

    def _deliver(self, step: Step) -> None:
        self.prompt_tokens += sum(sequence.prompt for sequence in step.first)
        self.output_tokens += len(self.engine.decoding) + len(step.ended)
        for sequence in self.engine.decoding:
            sequence.owner.token()
        for sequence in step.ended:
            sequence.owner.token()
            sequence.owner.end(failed=False)
        for sequence in step.failed:
            sequence.owner.end(failed=True)
