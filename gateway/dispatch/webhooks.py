"""Tells tenants what ended: each event once to each endpoint, tried again for up to a day.

That all were told of the end of a batch is noted on disk; what Redis loses before that is announced
again. An event has the same id however often it is announced, so a receiver can tell a
repeat.
"""

import asyncio
import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.batches.states import at
from gateway.core.clock import Clock
from gateway.core.errors import UpstreamError
from gateway.core.loops import keep_doing
from gateway.policy.model import Policy, WebhookPolicy
from gateway.policy.target import RetryPolicy
from gateway.providers.webhooks import WebhookSender
from gateway.routing.retry import delay_before
from gateway.schemas.webhooks import Event, signed_headers
from gateway.store.batches import BatchStore
from gateway.store.deliveries import Deliveries, Delivery

log = logging.getLogger(__name__)

_SENDERS = 4
_EVERY_SECONDS = 0.5
_AGAIN_SECONDS = 60.0
_CLAIM_MS = 30_000


@dataclass(frozen=True, slots=True)
class Patience:
    """Bounds of the pause between tries, and for how long there are any, in seconds."""

    base: float = 5.0
    cap: float = 3600.0
    total: float = 86_400.0


class Webhooks:
    """Announces and sends. Several processes may: a delivery is one's at a time."""

    def __init__(
        self,
        policy: Policy,
        batches: BatchStore,
        deliveries: Deliveries,
        sender: WebhookSender,
        patience: Patience,
        clock: Clock,
    ) -> None:
        self._endpoints = {
            tenant: {endpoint_id(hook.url): hook for hook in known.webhooks}
            for tenant, known in policy.tenants.items()
        }
        self._batches = batches
        self._deliveries = deliveries
        self._sender = sender
        self._patience = patience
        self._rule = RetryPolicy(base=patience.base, cap=patience.cap)
        self._clock = clock

    async def run(self) -> None:
        """Announce and send until cancelled."""
        every = _EVERY_SECONDS
        try:
            await asyncio.gather(
                keep_doing(self.announce_batch, "announcing", every=every, busy=True),
                keep_doing(self.announce_kept, "announcing", every=_AGAIN_SECONDS),
                *(
                    keep_doing(self.send_one, "webhooks", every=every, busy=True)
                    for _ in range(_SENDERS)
                ),
            )
        finally:
            await self._sender.aclose()

    async def announce(self, kind: str, object_id: str, tenant: str, ended_at: int) -> bool:
        """Have every endpoint of ``tenant`` that wants ``kind`` told, once.

        False: some are still to be told. Announcing again finds out, and puts back what was lost.
        """
        event, now = Event(kind, object_id, ended_at), int(self._clock.now())
        told = True
        for name, hook in self._of(tenant).items():
            if hook.events is None or kind in hook.events:
                told &= await self._deliveries.add(event, tenant, name, now)
        return told

    async def tell(self, kind: str, object_id: str, tenant: str, ended_at: int) -> None:
        """Announce what has no other record that it is to be announced: it is kept on disk."""
        event = Event(kind, object_id, ended_at)
        if any(hook.events is None or kind in hook.events for hook in self._of(tenant).values()):
            await self._deliveries.keep(event, tenant)
            await self._announce_kept(event, tenant)

    async def announce_kept(self) -> None:
        """Announce again what is kept on disk: Redis may have lost it."""
        for event, tenant in await self._deliveries.kept():
            await self._announce_kept(event, tenant)

    async def announce_batch(self) -> bool:
        """Announce one batch that ended; False when there was none."""
        batch_id = await self._batches.claim_announcement(_CLAIM_MS)
        if batch_id is None:
            return False
        await self._announce(batch_id)
        return True

    async def send_one(self) -> bool:
        """Make one delivery that is due; False when there was none."""
        delivery = await self._deliveries.claim(_CLAIM_MS)
        if delivery is None:
            return False
        hook = self._of(delivery.tenant).get(delivery.endpoint)
        if hook is None:
            log.warning("%s has no endpoint any more", delivery.id)
            await self._end(delivery)
            return True
        body, now = delivery.event.to_json(), int(self._clock.now())
        headers = signed_headers(hook.secret.get_secret_value(), delivery.event.id, now, body)
        try:
            await self._sender.send(hook.url, headers, body)
        except UpstreamError as error:
            await self._again(delivery, error)
        else:
            await self._end(delivery)
        return True

    async def _announce(self, batch_id: str) -> None:
        """Announce a batch; when all were told, note that on disk."""
        record = await self._batches.load(batch_id)
        if record is not None and record.ended:
            ended_at = record.times.get(at(record.status), record.facts.created_at)
            recent = self._clock.now() - ended_at < 2 * self._patience.total
            kind, tenant = f"batch.{record.status.value}", record.facts.tenant
            if recent and not await self.announce(kind, batch_id, tenant, ended_at):
                return
            await self._batches.mark_announced(batch_id)
        await self._batches.end_announcement(batch_id)

    async def _announce_kept(self, event: Event, tenant: str) -> None:
        if await self.announce(event.type, event.object_id, tenant, event.created_at):
            await self._deliveries.drop(event)

    async def _end(self, delivery: Delivery) -> None:
        await self._deliveries.end(delivery)
        if delivery.event.type.startswith("batch."):
            await self._announce(delivery.event.object_id)
        else:
            await self._announce_kept(delivery.event, delivery.tenant)

    async def _again(self, delivery: Delivery, error: UpstreamError) -> None:
        tries, now = delivery.tries + 1, self._clock.now()
        if now - delivery.since >= self._patience.total:
            log.error("%s is given up after %d tries: %s", delivery.id, tries, error.message)
            await self._end(delivery)
            return
        log.warning("%s failed (%d tries): %s", delivery.id, tries, error.message)
        due = now + delay_before(tries, error, self._rule)
        await self._deliveries.later(delivery, int(1000 * due))

    def _of(self, tenant: str) -> Mapping[str, WebhookPolicy]:
        return self._endpoints.get(tenant, {})


def endpoint_id(url: str) -> str:
    """A name for an endpoint that tells nothing of its address."""
    return hashlib.sha256(url.encode()).hexdigest()[:12]
