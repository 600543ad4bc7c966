"""Noticing that the client has left while its call is under way."""

import asyncio

from starlette.types import Receive

#: A call that is answered sooner is not watched: a task for each would cost more than it saves.
_WATCH_AFTER = 0.05


class DisconnectWatcher:
    """Cancels the task that made it when the client closes its connection; ``gone`` tells why.

    The request's body must have been read.
    """

    def __init__(self, receive: Receive) -> None:
        self.gone = False
        self._receive = receive
        self._task = asyncio.current_task()
        self._watcher: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(_WATCH_AFTER, self._begin)

    def close(self) -> None:
        """Stop watching."""
        self._timer.cancel()
        self._task = None
        if self._watcher is not None:
            self._watcher.cancel()
            self._watcher = None  # the task's error keeps us: a circle would stay until collected

    def _begin(self) -> None:
        self._watcher = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self._task is not None:
            self.gone = True
            self._task.cancel()
