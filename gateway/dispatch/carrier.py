"""Rows that can wait go to a provider's own Batch API, at its price."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from gateway.core.endpoints import RESPONSES
from gateway.core.ids import new_id
from gateway.dispatch.carriage import Carriage, Means, Spare
from gateway.dispatch.held import HeldRow
from gateway.routing.route import Route
from gateway.store.carries import Carry

_OLDEST_SECONDS = 8 * 86400.0

RouteOf = Callable[[str], Route]


class Carrier:
    """Collects rows of one target into batches there; each has a task of its own.

    A row that another process had handed in before it died joins that batch instead of being
    handed in again: the records on disk tell.
    """

    def __init__(self, means: Means, route_of: RouteOf) -> None:
        self._means = means
        self._api, self._rules, self._carries = means.api, means.rules, means.carries
        self._holdings, self._clock = means.holdings, means.clock
        self._route_of = route_of
        self._collecting: dict[tuple[str, str], list[HeldRow]] = {}
        self._spares: dict[str, Spare | None] = {}
        self._owners: dict[str, str] = {}
        self._seen: set[str] = set()
        self._under_way: dict[str, Carriage] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def room(self) -> int:
        """Rows that it would take now."""
        held = sum(map(len, self._collecting.values()))
        held += sum(len(carriage.rows) for carriage in self._under_way.values())
        return max(0, self._rules.rows * self._rules.batches - held)

    def takes(self, row: HeldRow) -> bool:
        """Whether the row has the time: never failed before, and far from its deadline.

        A row whose endpoint the provider does not have is none of these.
        """
        if row.run.endpoint == RESPONSES and not self._route_of(row.run.model).responses:
            return False
        fresh = not row.row.error_tries and not row.row.crash_tries
        return fresh and row.run.deadline_ms / 1000 - self._clock.now() >= self._rules.slack

    def knows(self, row: HeldRow) -> bool:
        """Whether a batch that is on record has the row."""
        return _key(row) in self._owners

    async def refresh(self) -> None:
        """Read the records that others wrote since the last time; remove what is very old."""
        for carry_id in await self._carries.ids():
            if carry_id in self._seen:
                continue
            carry = await self._carries.load(carry_id)
            if carry is not None and self._clock.now() - carry.created_at > _OLDEST_SECONDS:
                await self._carries.remove(carry_id)
            elif carry is not None:
                self._note(carry)

    def stage(self, rows: Sequence[HeldRow], spare: Spare | None) -> None:
        """Take rows over. ``spare`` takes back those that have to go elsewhere after all."""
        known: dict[str, list[HeldRow]] = {}
        for row in rows:
            owner = self._owners.get(_key(row))
            if owner is not None:
                known.setdefault(owner, []).append(row)
                continue
            group = row.run.model, row.run.endpoint
            waiting = self._collecting.setdefault(group, [])
            waiting.append(row)
            self._spares[row.run.model] = spare
            if len(waiting) == 1:
                self._later(group)
            if len(waiting) >= self._rules.rows or _bytes(waiting) >= self._rules.bytes:
                self._hand_in(group)
        for owner, again in known.items():
            self._start(self._resume(owner, again, spare))

    def drop(self, row: HeldRow) -> bool:
        """Stop a row here. False when it is not here, or its result is on the way."""
        if row.ended or row.dropped:
            return False
        row.dropped = True
        for carriage in self._under_way.values():
            carriage.look()
        return True

    def has(self, row: HeldRow) -> bool:
        """Whether the row is in its hands."""
        waiting = self._collecting.get((row.run.model, row.run.endpoint), ())
        key = _key(row)
        return row in waiting or any(c.rows.get(key) is row for c in self._under_way.values())

    def close(self) -> None:
        """Leave everything as it is on record; a successor goes on."""
        self._collecting.clear()
        for task in self._tasks:
            task.cancel()

    async def idle(self) -> None:
        """Wait until no task is left."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._api.aclose()

    def _later(self, group: tuple[str, str]) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(self._rules.collect, self._hand_in, group)

    def _hand_in(self, group: tuple[str, str]) -> None:
        rows = []
        for row in self._collecting.pop(group, ()):
            if self._holdings.may_start(row):
                rows.append(row)
            else:
                self._holdings.not_started(row)
        if rows:
            keys = tuple(map(_key, rows))
            carry = Carry(new_id("carry"), self._api.name, self._clock.now(), keys)
            self._start(self._carry(carry, rows, self._spares.get(group[0])))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _resume(self, carry_id: str, rows: list[HeldRow], spare: Spare | None) -> None:
        """Rows come back in several leases: those that find their batch watched join it."""
        while (carriage := self._under_way.get(carry_id)) is not None:
            if not carriage.closing.is_set():
                for row in rows:
                    carriage.join(_key(row), row)
                return
            await carriage.over.wait()
        carry = await self._carries.load(carry_id)
        if carry is None:
            self._forget(carry_id)
            self.stage(rows, spare)
        elif carry_id in self._under_way:
            await self._resume(carry_id, rows, spare)
        else:
            await self._carry(carry, rows, spare, pause=self._rules.collect)

    async def _carry(
        self, carry: Carry, rows: list[HeldRow], spare: Spare | None, *, pause: float = 0.0
    ) -> None:
        self._note(carry)
        carriage = Carriage(carry, self._means, spare)
        self._under_way[carry.id] = carriage
        for row in rows:
            carriage.join(_key(row), row)
        try:
            await asyncio.sleep(pause)
            known = await carriage.run(self._route_of(rows[0].run.model))
            if not known or await self._carries.load(carry.id) is None:
                self._forget(carry.id)
        finally:
            del self._under_way[carry.id]
            carriage.over.set()
        if not known:
            await self._carries.remove(carry.id)
            self.stage(list(carriage.rows.values()), spare)

    def _note(self, carry: Carry) -> None:
        self._seen.add(carry.id)
        if carry.target == self._api.name:
            self._owners |= dict.fromkeys(carry.rows, carry.id)

    def _forget(self, carry_id: str) -> None:
        self._owners = {key: owner for key, owner in self._owners.items() if owner != carry_id}


def _key(row: HeldRow) -> str:
    """What names the row there; after a failure it is another one."""
    return f"{row.run.segment}:{row.row.index}:{row.row.error_tries}"


def _bytes(rows: Sequence[HeldRow]) -> int:
    return sum(len(row.source.body) for row in rows)
