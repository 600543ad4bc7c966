"""One batch at a provider's own Batch API: handed in, watched, collected."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import orjson

from gateway.core.clock import Clock
from gateway.core.errors import (
    OutcomeUnknown,
    StreamInterrupted,
    UpstreamError,
    UpstreamFailed,
    UpstreamRefused,
    UpstreamThrottled,
    UpstreamTimeout,
)
from gateway.core.exact_json import dumps, with_long_integers
from gateway.core.usage import reported_in
from gateway.dispatch.held import HeldRow, Holdings
from gateway.dispatch.run import RowRunner
from gateway.dispatch.settle import Settlement, Settler
from gateway.providers.failures import failure
from gateway.providers.remote_batches import RemoteBatch, RemoteBatches
from gateway.routing.offline import RowAnswer
from gateway.routing.outgoing import outgoing_body
from gateway.routing.route import Route
from gateway.store.carries import Carries, Carry

log = logging.getLogger(__name__)

_T = TypeVar("_T")
Spare = Callable[[list[HeldRow]], None]

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 60.0
_SETTLE_PAUSE = 0.05
_MOST_UNSETTLED = 2048
_SUCCESS = range(200, 300)
_PASSING = (UpstreamThrottled, UpstreamRefused, UpstreamTimeout, OutcomeUnknown, StreamInterrupted)


@dataclass(frozen=True, slots=True)
class CarryRules:
    """How a provider's Batch API is used. Times in seconds.

    ``window`` is the completion window asked for; rows with less than ``slack`` to their deadline
    are not handed in, and those still there with less than half of it are taken back when another
    target can run them. ``collect`` passes before a batch that is not full is handed in; ``rows``
    and ``bytes`` are the most of one batch, ``batches`` run at once, ``poll`` apart they are asked
    about.
    """

    window: str
    slack: float
    collect: float
    poll: float
    rows: int
    batches: int
    bytes: int = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Means:
    """What it takes to use one provider's Batch API."""

    api: RemoteBatches
    rules: CarryRules
    carries: Carries
    runner: RowRunner
    settler: Settler
    holdings: Holdings
    clock: Clock


class Carriage:
    """The way of one batch. ``rows`` are those of it that this process holds.

    More may come until it is ``closing``; who follows it sets ``over`` at its end.
    """

    def __init__(self, carry: Carry, means: Means, spare: Spare | None) -> None:
        self.carry = carry
        self.rows: dict[str, HeldRow] = {}
        self.closing = asyncio.Event()
        self.over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._spare = spare
        self._means = means
        self._api = means.api
        self._changed = asyncio.Event()
        self._recalled = False

    def join(self, key: str, row: HeldRow) -> None:
        """The batch has this row, or will have."""
        self.rows[key] = row
        row.task = self._task

    def look(self) -> None:
        """A row of it was dropped."""
        self._changed.set()

    async def run(self, route: Route) -> bool:
        """Hand in what was not yet, wait for the end, settle every row held.

        False: it never got to the provider and not all of its rows are here; they start afresh.
        """
        self._task = asyncio.current_task()
        for row in self.rows.values():
            row.task = self._task
        try:
            if not self.carry.batch and not await self._hand_in(route):
                return False
            batch = await self._watched()
            self.closing.set()
            await self._collect(batch, route)
        except UpstreamError as error:
            log.warning("%s: a batch there came to nothing: %s", self.carry.target, error.message)
            self._fail_rest(error.message, "provider_batch_failed")
            await self._means.carries.remove(self.carry.id)
        return True

    async def _hand_in(self, route: Route) -> bool:
        """Every step is on disk before the next, so that a successor goes on from there."""
        known = await self._insist(lambda: self._api.find(self.carry.id))
        if known is None:
            if set(self.rows) != set(self.carry.rows):
                return False
            await self._means.carries.save(self.carry)
            if not self.carry.file:
                content = await asyncio.to_thread(self._content, route)
                file = await self._insist(lambda: self._api.upload(content))
                self.carry = self.carry.at(file=file)
                await self._means.carries.save(self.carry)
            known = await self._insist(self._create)
        self.carry = self.carry.at(batch=known.id)
        await self._means.carries.save(self.carry)
        return True

    async def _create(self) -> RemoteBatch:
        """An answer that was lost does not make a second batch."""
        endpoint = next(iter(self.rows.values())).run.endpoint
        try:
            return await self._api.create(
                self.carry.file, endpoint, self._means.rules.window, self.carry.id
            )
        except (OutcomeUnknown, UpstreamTimeout, UpstreamFailed):
            found = await self._insist(lambda: self._api.find(self.carry.id))
            if found is None:
                raise
            return found

    def _content(self, route: Route) -> bytes:
        lines = []
        for key in self.carry.rows:
            row = self.rows[key]
            members = with_long_integers(row.source.body, orjson.loads(row.source.body))
            body = outgoing_body(members, route, stream=False)
            url = orjson.dumps(row.run.endpoint).decode()
            head = f'{{"custom_id":"{key}","method":"POST","url":{url},"body":'
            lines.append(head.encode() + body + b"}\n")
        return b"".join(lines)

    async def _watched(self) -> RemoteBatch:
        """Ask until it has ended; call it back when nobody waits for it or time runs short."""
        while True:
            batch = await self._insist(lambda: self._api.get(self.carry.batch))
            if batch.ended:
                return batch
            if not self._recalled and self._late():
                await self._insist(lambda: self._api.cancel(self.carry.batch))
                self._recalled = True
            self._changed.clear()
            try:
                async with asyncio.timeout(self._means.rules.poll):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _late(self) -> bool:
        waiting = [row for row in self.rows.values() if not row.dropped]
        if not waiting:
            return True
        first = min(row.run.deadline_ms for row in waiting) / 1000
        return (
            self._spare is not None
            and first - self._means.clock.now() < self._means.rules.slack / 2
        )

    async def _collect(self, batch: RemoteBatch, route: Route) -> None:
        for file in batch.files:
            await self._insist(partial(self._collect_file, file, route))
        left = [row for row in self.rows.values() if not row.ended and not row.dropped]
        if self._recalled and self._spare is not None and left:
            for row in left:
                row.task = None
            self._spare(left)
        elif left:
            why = batch.fault or f"The provider's batch ended as {batch.status}."
            expired = batch.status == "expired"
            self._fail_rest(why, "batch_expired" if expired else "provider_batch_failed")
        if set(self.rows) == set(self.carry.rows):
            await self._clean_up(batch)

    async def _collect_file(self, file: str, route: Route) -> None:
        async for line in self._api.lines(file):
            row = self.rows.get(str(line.get("custom_id")))
            if row is None or row.ended or row.dropped:
                continue
            while self._means.settler.pending > _MOST_UNSETTLED:  # noqa: ASYNC110 - at its own pace
                await asyncio.sleep(0.01)
            self._settle(row, self._outcome(line, route))

    def _outcome(self, line: dict[str, Any], route: Route) -> RowAnswer | UpstreamError:
        response = line.get("response") or {}
        status, body = response.get("status_code"), response.get("body")
        if isinstance(status, int) and status in _SUCCESS and isinstance(body, dict):
            return RowAnswer(status, body, reported_in(body), route.target, route.served_model)
        if isinstance(status, int) and status not in _SUCCESS:
            text = dumps(body)
            return failure(route.target, status, {}, text, self._api.scrub, self._means.clock.now)
        error = line.get("error") or {}
        message = self._api.scrub.clean(str(error.get("message") or "The provider gave no answer."))
        return UpstreamFailed(
            message, target=route.target, code=str(error.get("code") or "") or None
        )

    def _settle(self, row: HeldRow, outcome: RowAnswer | UpstreamError) -> None:
        row.ended = True
        self._means.settler.put(Settlement.of(row, self._means.runner.told(row, outcome)))

    def _fail_rest(self, message: str, code: str) -> None:
        error = UpstreamFailed(message, target=self.carry.target, code=code)
        for row in self.rows.values():
            if not row.ended and not row.dropped:
                self._settle(row, error)

    async def _clean_up(self, batch: RemoteBatch) -> None:
        """Once our results are safe, what the provider keeps can go."""
        while any(map(_unsettled, self.rows.values())):  # noqa: ASYNC110 - as the settler goes
            await asyncio.sleep(_SETTLE_PAUSE)
        await self._means.carries.remove(self.carry.id)
        for file in (self.carry.file, *batch.files):
            try:
                await self._api.delete_file(file)
            except UpstreamError as error:
                log.info("%s: a file stays there: %s", self.carry.target, error.message)

    async def _insist(self, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """Try until it works or is refused for good: what was handed in is worth waiting for."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return await attempt()
            except _PASSING as error:
                log.info("%s: its Batch API waits: %s", self.carry.target, error.message)
                wait = error.retry_after or pause
            except UpstreamFailed as error:
                if self._late():
                    raise
                log.info("%s: its Batch API failed: %s", self.carry.target, error.message)
                wait = pause
            await asyncio.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _unsettled(row: HeldRow) -> bool:
    return row.ended and (row.run.segment, row.row.index) in row.lease.rows
