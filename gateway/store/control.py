"""What an operator does with the queue: pause, resume, reorder, try again, forget."""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from gateway.core.errors import Conflict
from gateway.store.client import StoreClient
from gateway.store.keys import SHARDS
from gateway.store.scripts import run_script

_SOME_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Scope:
    """A whole shard, or one tenant or one segment in it. The shard has no ``name``."""

    kind: Literal["shard", "tenant", "segment"] = "shard"
    name: str = ""


@dataclass(frozen=True, slots=True)
class Pause:
    """Of a tenant or of everything, and the shards that there were when it was set."""

    scope: Scope
    shards: tuple[str, ...]
    paused: bool


class Standing(Protocol):
    """What holds also for shards that are not there yet; see ``gateway.store.controls``."""

    async def pauses(self) -> list[Pause]:
        """Of every scope the latest word."""


class QueueControl:
    """The operator's part of the queue client."""

    _redis: StoreClient
    _standing: Standing | None = None

    async def list_shard(self, shard: str) -> bool:
        """List a shard before its first segment. True when it was not listed."""
        return bool(await self._redis.execute_command("SADD", SHARDS, shard))

    async def pause_standing(self, shard: str) -> None:
        """Pause in a listed shard what is paused everywhere, also while that changes."""
        known: list[Pause] | None = None
        while self._standing is not None and known != (found := await self._standing.pauses()):
            known = found
            for pause in found:
                if pause.paused:
                    await self.pause_ahead(shard, pause.scope)
                else:
                    await self.resume(shard, pause.scope)

    async def _control(self, name: str, shard: str, *args: str | int) -> Any:
        return await run_script(self._redis, name, shard, *args)

    async def pause(self, shard: str, scope: Scope) -> bool | None:
        """Lease nothing of ``scope`` any more; rows in flight finish, deadlines go on.

        Returns whether it was paused before, None when there is no such thing.
        """
        return await self._set_paused(shard, scope, 1)

    async def pause_ahead(self, shard: str, scope: Scope) -> None:
        """Pause a shard or tenant, also one that is not there yet."""
        await self.list_shard(shard)
        await self._control("pause", shard, scope.kind, scope.name, 1, 1)

    async def resume(self, shard: str, scope: Scope) -> bool | None:
        """Lease ``scope`` again. Whether it was paused; None when there is no such thing."""
        return await self._set_paused(shard, scope, 0)

    async def _set_paused(self, shard: str, scope: Scope, paused: int) -> bool | None:
        states = await self._control("pause", shard, scope.kind, scope.name, paused, 0)
        return bool(states[0]) if states else None

    async def reprioritise(self, shard: str, scope: Scope, priority: int) -> int:
        """Set the priority of the queued segments of ``scope``: a point is a minute of deadline.

        It orders segments of one tenant. Returns how many segments changed.
        """
        given = (scope.kind, scope.name, "prio", priority)
        return int(await self._control("reprioritise", shard, *given))

    async def reweigh(self, shard: str, tenant: str, weight: float) -> int:
        """Set the weight of what a tenant has queued. Returns how many segments changed."""
        given = ("tenant", tenant, "weight", repr(float(weight)))
        return int(await self._control("reprioritise", shard, *given))

    async def retry_dead(self, shard: str, segment: str = "") -> int:
        """Rows that were given up, and whose error line is not written, start over.

        Of all segments when none is named. Returns how many wait again.
        """
        total = 0
        while some := int(await self._control("retry_dead", shard, segment, _SOME_ROWS)):
            total += some
        return total

    async def purge(self, shard: str, segment: str) -> bool:
        """Forget a segment that is over or was not started. False when there is none.

        Raises Conflict when it runs.
        """
        done = int(await self._control("purge", shard, segment, 0))
        if done < 0:
            raise Conflict(f"{segment} is not over: cancel it first.", code="not_terminal")
        return bool(done)

    async def discard(self, shard: str, segment: str) -> bool:
        """Forget a segment if it was not started; leave any other alone."""
        return bool(await self._control("purge", shard, segment, 1))

    async def confirm_clock(self, shard: str) -> int:
        """The server's clock is right: let deadlines pass. Returns the ms that it had leapt."""
        return int(await self._control("confirm_clock", shard))
