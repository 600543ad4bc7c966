"""One call: its sequence in the engine, and who waits for its tokens."""

import asyncio
from typing import Self

from gateway.simulator.clockwork import Clockwork
from gateway.simulator.requests import Wanted
from gateway.simulator.sequence import Sequence


class Call:
    """Use as a context manager: what is not over at its end is cancelled."""

    def __init__(self, clockwork: Clockwork, wanted: Wanted) -> None:
        self._clockwork = clockwork
        self._each = wanted.stream
        self._sequence = Sequence(wanted.prompt, wanted.output, wanted.priority, self)
        self._waiter: asyncio.Future[None] | None = None
        self.tokens = 0
        self.over = False
        self.failed = False

    def __enter__(self) -> Self:
        self._clockwork.add(self._sequence)
        return self

    def __exit__(self, *_: object) -> None:
        self._clockwork.cancel(self._sequence)

    async def heard(self, tokens: int) -> int:
        """The tokens so far, once there are more than ``tokens`` or the call is over.

        Of a call that is not streamed, its end.
        """
        while not self.over and (self.tokens <= tokens or not self._each):
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self.tokens

    def token(self) -> None:
        """One more token."""
        self.tokens += 1
        if self._each:
            self._wake()

    def end(self, *, failed: bool) -> None:
        """The last one was said, or there is no room."""
        self.over, self.failed = True, failed
        self._wake()

    def leave(self) -> None:
        """The client has left."""
        self._clockwork.cancel(self._sequence)
        self.end(failed=True)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
