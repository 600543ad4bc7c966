"""What each process knows of the targets, for whoever asks: told every few seconds."""

from typing import Any, Final

import orjson

from gateway.core.clock import Clock
from gateway.store.client import StoreClient

_REPORTS: Final = "gw:{sys}:targets"
_FRESH_SECONDS: Final = 15.0
_KEEP_SECONDS: Final = 60


class TargetReports:
    """Methods raise StoreUnavailable when Redis is away."""

    def __init__(self, redis: StoreClient, clock: Clock) -> None:
        self._redis = redis
        self._clock = clock

    async def put(self, process: str, role: str, targets: dict[str, Any]) -> None:
        """Replace what ``process`` told; what others told long ago is forgotten."""
        report = {"at": self._clock.now(), "role": role, "targets": targets}
        await self._redis.execute_command("HSET", _REPORTS, process, orjson.dumps(report))
        await self._redis.execute_command("EXPIRE", _REPORTS, _KEEP_SECONDS)
        old = [name for name, age in (await self._all()).items() if age[0] > _KEEP_SECONDS]
        if old:
            await self._redis.execute_command("HDEL", _REPORTS, *old)

    async def fresh(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Name, role and targets of each process that told within 15 s, in the names' order."""
        found = await self._all()
        return [
            (name, str(report["role"]), report["targets"])
            for name, (age, report) in sorted(found.items())
            if age <= _FRESH_SECONDS
        ]

    async def _all(self) -> dict[str, tuple[float, dict[str, Any]]]:
        flat = await self._redis.execute_command("HGETALL", _REPORTS)
        now = self._clock.now()
        reports = {name.decode(): orjson.loads(text) for name, text in flat.items()}
        return {name: (now - report["at"], report) for name, report in reports.items()}
