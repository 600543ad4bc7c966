"""Work that goes in steps: while one step is under way, what comes waits for the next."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Coalescer(Generic[Key, Item, Answer]):
    """Sends all that waits for a key in one step, of at most ``most``; one alone goes at once.

    A step answers for each item, or with the exception that its sender gets; what it raises, all
    of them get. A sender that is cancelled leaves its item to the step.
    """

    def __init__(
        self,
        step: Callable[[Key, Sequence[Item]], Awaitable[Sequence[Answer | Exception]]],
        most: int,
    ) -> None:
        self._step = step
        self._most = most
        self._waiting: dict[Key, list[tuple[Item, asyncio.Future[Answer]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, key: Key, item: Item) -> Answer:
        """What became of the item."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if key in self._waiting:
            self._waiting[key].append((item, answer))
        else:
            self._waiting[key] = [(item, answer)]
            task = asyncio.create_task(self._send_all(key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await answer

    async def _send_all(self, key: Key) -> None:
        while waiting := self._waiting[key]:
            sent, self._waiting[key] = waiting[: self._most], waiting[self._most :]
            answers: Sequence[Answer | Exception]
            try:
                answers = await self._step(key, [item for item, _ in sent])
            except Exception as error:  # noqa: BLE001 - handed to whoever waits
                answers = [error] * len(sent)
            for (_, answer), given in zip(sent, answers, strict=True):
                _tell(answer, given)
        del self._waiting[key]


def _tell(answer: asyncio.Future[Answer], given: Answer | Exception) -> None:
    if answer.done():  # its sender was cancelled
        return
    if isinstance(given, Exception):
        answer.set_exception(given)
    else:
        answer.set_result(given)
