"""Active health checks of the targets, and their load, beside all calls."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from gateway.core.errors import HeadwayError
from gateway.policy.model import Policy
from gateway.providers.engine_metrics import ENGINES, engine_load
from gateway.routing.state import TargetState

if TYPE_CHECKING:
    from gateway.core.targets import EngineLoad

#: Status and body of ``GET path`` at a target within some seconds; raises HeadwayError.
GetPage = Callable[[str, str, float], Awaitable[tuple[int, bytes]]]
_LIMIT = 2.0
_BAD_IN_A_ROW = 2
_METRICS = "/metrics"
_GOOD = range(200, 300)


class TargetMonitor:
    """Asks every target that has a health path or tells its load, once in ``every`` seconds.

    Two bad answers in a row take a target out, one good one puts it back. A target that does not
    tell its load is no worse for it; the ``listeners`` hear of those that do.
    """

    def __init__(
        self,
        policy: Policy,
        states: Mapping[str, TargetState],
        get_page: GetPage,
        every: float = 1.0,
    ) -> None:
        self.listeners: list[Callable[[str, EngineLoad], None]] = []
        self._states = states
        self._get_page = get_page
        self._every = every
        self._bad = dict.fromkeys(policy.targets, 0)
        self._targets = {
            name: target
            for name, target in policy.targets.items()
            if target.health is not None or target.kind in ENGINES
        }

    async def run(self) -> None:
        """Go round until cancelled; a target that is slow to answer delays no other."""
        await asyncio.gather(*(self._attend(name) for name in self._targets))

    async def _attend(self, name: str) -> None:
        while True:
            await self.visit(name)
            await asyncio.sleep(self._every)

    async def visit(self, name: str) -> None:
        """Look once at one target."""
        target = self._targets[name]
        if target.health is not None:
            await self._check_health(name, target.health)
        if target.kind in ENGINES:
            await self._read_load(name)

    async def _check_health(self, name: str, path: str) -> None:
        healthy = await self._page(name, path) is not None
        self._bad[name] = 0 if healthy else self._bad[name] + 1
        if healthy or self._bad[name] >= _BAD_IN_A_ROW:
            self._states[name].probed(healthy=healthy)

    async def _read_load(self, name: str) -> None:
        page = await self._page(name, _METRICS)
        load = None if page is None else engine_load(page)
        self._states[name].reported(load)
        if load is not None:
            for hear in self.listeners:
                hear(name, load)

    async def _page(self, name: str, path: str) -> bytes | None:
        """The page, or None when there is no good answer."""
        try:
            status, body = await self._get_page(name, path, _LIMIT)
        except HeadwayError:
            return None
        return body if status in _GOOD else None
