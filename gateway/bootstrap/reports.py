"""Tells what this process knows of the targets, every few seconds."""

from collections.abc import Callable
from typing import Any, Final

from gateway.core.loops import keep_doing
from gateway.store.reports import TargetReports

_EVERY_SECONDS: Final = 3.0


class Reporting:
    """Of one process with its role; ``make`` gives what it knows of each target."""

    def __init__(
        self, reports: TargetReports, process: str, role: str, make: Callable[[], dict[str, Any]]
    ) -> None:
        self._reports = reports
        self._process = process
        self._role = role
        self._make = make

    async def run(self) -> None:
        """Until cancelled."""
        await keep_doing(self.step, "telling of targets", every=_EVERY_SECONDS)

    async def step(self) -> None:
        """Tell once."""
        await self._reports.put(self._process, self._role, self._make())
