"""The gateway's word to the dispatchers: how many interactive calls are at each target."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from gateway.core.lanes import Lane
from gateway.core.load import TargetLoad
from gateway.routing.admission import Admission

_COALESCE_SECONDS = 0.05
_HEARTBEAT_SECONDS = 0.25

Latencies = Callable[[], Mapping[str, tuple[float, float | None]]]


class LoadReporter:
    """Says every change at once, two changes at least 50 ms apart, and the same again each 250 ms.

    Off the path of any call: a call sets an event, nothing else. ``latencies`` gives the fresh mean
    TTFT and ITL of each target and forgets them.
    """

    def __init__(
        self,
        admission: Admission,
        latencies: Latencies,
        publish: Callable[[Mapping[str, TargetLoad]], Awaitable[None]],
    ) -> None:
        self._admission = admission
        self._latencies = latencies
        self._publish = publish
        self._targets = sorted({name for name, _ in admission.places()})

    async def report(self) -> None:
        """Publish the load, then wait until there is a reason to do so again.

        Raises what ``publish`` raises; the latencies of that time are lost.
        """
        self._admission.changed.clear()
        await self._publish(self._load())
        await asyncio.sleep(_COALESCE_SECONDS)
        try:
            async with asyncio.timeout(_HEARTBEAT_SECONDS - _COALESCE_SECONDS):
                await self._admission.changed.wait()
        except TimeoutError:
            return

    def _load(self) -> dict[str, TargetLoad]:
        fresh = self._latencies()
        loads = {}
        for name in self._targets:
            calls = self._admission.running(name, Lane.INTERACTIVE)
            calls += self._admission.waiting(name, Lane.INTERACTIVE)
            prefilling = self._admission.prefilling(name, Lane.INTERACTIVE)
            if calls or name in fresh:
                loads[name] = TargetLoad(calls, prefilling, *fresh.get(name, (None, None)))
        return loads
