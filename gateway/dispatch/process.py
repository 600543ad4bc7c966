"""The dispatcher process: its loops in one task group, and an orderly end."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

from gateway.dispatch.loop import Dispatcher

log = logging.getLogger(__name__)


class Runs(Protocol):
    """Something that goes on until it is cancelled."""

    def run(self) -> Coroutine[Any, Any, None]:
        """Go on until cancelled."""


async def run_until(
    stop: asyncio.Event, dispatcher: Dispatcher, keepers: Sequence[Runs], others: Sequence[Runs]
) -> None:
    """Dispatch until ``stop`` is set, then stop leasing, finish or give back, and return.

    ``keepers`` (renewer, settler) go on until the last lease is settled or given back; ``others``
    (intake, finalising, reaping) end at once. A loop that fails ends the process: its supervisor
    starts a fresh one, and the queue hands the rows out again.
    """
    async with asyncio.TaskGroup() as tasks:
        kept = [tasks.create_task(keeper.run()) for keeper in keepers]
        rest = [tasks.create_task(other.run()) for other in others]
        filling = tasks.create_task(dispatcher.run())
        try:
            await stop.wait()
        except asyncio.CancelledError:
            # A loop failed. A cancelled command may end in an error of its own: say it twice.
            dispatcher.give_up()
            raise
        log.info("stopping: no more leases")
        for task in rest:
            task.cancel()
        await dispatcher.stop()
        await filling
        for task in kept:
            task.cancel()
