"""One call from its request to its record: classify, plan, answer, settle."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gateway.api.chunk_relay import ChunkRelay
from gateway.api.deferred import Deferred
from gateway.api.errors import RawHeaders, stream_event
from gateway.api.relay import Relay
from gateway.core.clock import Clock
from gateway.core.endpoints import below_prefix
from gateway.core.errors import ClientGone, UpstreamError
from gateway.core.lanes import Lane
from gateway.core.large_json import LARGE
from gateway.core.targets import UpstreamCall
from gateway.core.usage import Usage
from gateway.core.values import value
from gateway.metering.ledger import Ledger, OpenCall
from gateway.metering.record import Attempt, CallIntent, CallOutcome, CallStatus, CallTiming
from gateway.metering.unreported import may_have_worked, unreported
from gateway.providers.base import Reply
from gateway.providers.registry import Registry
from gateway.routing.admission import Admission, Slot
from gateway.routing.call_plan import CallPlan, RouteRequest
from gateway.routing.classifier import CallFacts, Classifier, Decision
from gateway.routing.outgoing import outgoing_body
from gateway.routing.route import Route
from gateway.routing.router import Router
from gateway.schemas.requests import ModelRequest
from gateway.tenancy.keys import Caller

if TYPE_CHECKING:
    from gateway.api.disconnect import DisconnectWatcher


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """Seconds: how long a head is held back, and how often an idle stream shows a sign of life."""

    head_hold: float = 10.0
    keep_alive: float = 15.0


@dataclass(frozen=True, slots=True)
class CallParts:
    """What calls are made with; ``deferred`` takes those to be answered later."""

    router: Router
    registry: Registry
    admission: Admission
    classifier: Classifier
    ledger: Ledger
    clock: Clock
    times: StreamTimes = StreamTimes()
    deferred: Deferred | None = None


@value
class Held:
    """An answer that has begun, and the place at the target it occupies."""

    reply: Reply
    slot: Slot

    async def aclose(self) -> None:
        """Close both; the place comes back whatever happens."""
        try:
            await self.reply.aclose()
        finally:
            self.slot.release()

    async def finish(self) -> None:
        """As ``aclose`` for an answer that was read to its end: the connection is kept."""
        try:
            await self.reply.finish()
        finally:
            self.slot.release()


class Call:
    """A call under way: who makes it, where it went, and its record, which is closed once."""

    def __init__(
        self, parts: CallParts, caller: Caller, endpoint: str, request: ModelRequest, call_id: str
    ) -> None:
        self.watcher: DisconnectWatcher | None = None
        self.parts = parts
        self.caller = caller
        self.endpoint = endpoint
        self.request = request
        self.id = call_id
        self.started = parts.clock.monotonic()
        self.attempts: list[Attempt] = []
        self.plan: CallPlan
        self.route: Route | None = None
        self.decision = Decision(Lane.INTERACTIVE, "default")
        self.usage = Usage()
        self.timing = CallTiming()
        self._record: OpenCall | None = None
        self._sent = False

    def begin(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Classify and plan, and open the record. Raises ClientError for what may not be."""
        request, caller = self.request, self.caller
        known = dict(headers)
        facts = CallFacts(
            self.endpoint,
            request.model,
            known,
            request.members,
            request.items,
            caller.key_id,
            caller.tenant,
        )
        self.decision = self.parts.classifier.classify(facts, caller.ceiling)
        wanted = RouteRequest(
            request.model,
            self.decision.lane,
            caller.tenant,
            request.stream,
            self.conversation(),
            known,
            caller.may_use,
        )
        self.plan = CallPlan(self.parts.router, self.parts.admission, self.parts.clock, wanted)
        self._record = self.parts.ledger.open(
            CallIntent(
                self.id,
                caller.tenant,
                caller.key_id,
                self.decision.lane,
                self.decision.reason,
                self.endpoint,
                request.model,
                self.parts.clock.now(),
                request.prompt_bytes,
                request.max_completion,
                traceparent=_text(known.get(b"traceparent")),
            )
        )

    def conversation(self) -> Mapping[str, Any]:
        """The members that tell which conversation this is, and how long."""
        return self.request.members

    def headers(self) -> RawHeaders:
        """What the answer tells about the call: its class, and who serves it once that is sure."""
        told = class_headers(self.decision)
        if self.route is not None:
            told += [
                (b"x-headway-target", self.route.target.encode()),
                (b"x-headway-served-model", self.route.served_model.encode()),
            ]
            if self.route not in self.plan.groups[0]:
                told.append((b"x-headway-fallback-from", self.request.model.encode()))
        if self.attempts:
            told.append((b"x-headway-attempts", b"%d" % len(self.attempts)))
        return told

    @property
    def tier(self) -> str | None:
        """The service tier really used, if the client asked for one."""
        asked = self.request.tier
        if asked is None:
            return None
        if self.decision.lane is Lane.ELASTIC:
            return "flex"
        return asked if asked in {"priority", "fast"} else "default"

    async def send(self, route: Route) -> Held:
        """One attempt: wait for a place, send, and note how it went."""
        slot = await self.plan.enter(route)
        self._sent = False
        try:
            if self.request.prompt_bytes <= LARGE:
                asked = self._upstream(route)
            else:
                asked = await asyncio.to_thread(self._upstream, route)
            reply = await self.parts.registry.get(route.target).send(asked)
        except BaseException as error:
            slot.release()
            self.failed(route, error)
            raise
        return Held(reply, slot)

    def relay(self, route: Route) -> Relay:
        """What passes the stream of ``route`` on to the client."""
        scrub = self.parts.registry.scrubber(route.target)
        return ChunkRelay(route.target, self.request, scrub, self.started, self.tier)

    def error_event(self, error: BaseException) -> bytes:
        """The event that ends a stream whose head has gone out."""
        return stream_event(error)

    def asked_of(self, route: Route) -> tuple[str, bytes]:
        """Endpoint and body of an attempt at ``route``."""
        asked, tier = self.request, self.tier
        body = outgoing_body(
            asked.members, route, stream=asked.stream, tier=tier, size=asked.prompt_bytes
        )
        return self.endpoint, body

    def _upstream(self, route: Route) -> UpstreamCall:
        endpoint, body = self.asked_of(route)
        return UpstreamCall(
            below_prefix(endpoint),
            body,
            self.id,
            self.request.stream,
            self.plan.timeouts(route),
            self.plan.key,
            route.served_model,
            route.head,
            self._note_sent,
        )

    def _note_sent(self) -> None:
        self._sent = True

    def failed(self, route: Route, error: BaseException) -> None:
        """Note an attempt that failed, and what it may have cost unless another one answers."""
        if self._sent and may_have_worked(error):
            self.usage = unreported(self.request.prompt_bytes)
        if isinstance(error, UpstreamError):
            self.attempts.append(Attempt(route.target, error.status, error.code))
        elif isinstance(error, asyncio.CancelledError):
            self.attempts.append(Attempt(route.target, None, ClientGone.code))

    def succeeded(self, route: Route, status: int) -> None:
        """Note the attempt that answers the call."""
        self.route = route
        self.attempts.append(Attempt(route.target, status))

    def broken(self, error: UpstreamError) -> None:
        """Note that the attempt that answered did not come to its end."""
        answered = self.attempts[-1]
        self.attempts[-1] = Attempt(answered.target, answered.status, error.code)
        if self.route is not None:
            self.plan.refused(self.route, error)
            self.route.state.failed(error, self.parts.clock.monotonic())

    @property
    def left(self) -> bool:
        """Whether the client has gone."""
        return self.watcher is not None and self.watcher.gone

    def answered(self) -> None:
        """The last bytes are about to go out: the client may leave from now on."""
        if self.watcher is not None:
            self.watcher.close()

    def settle(self, status: CallStatus, http_status: int) -> None:
        """Close the record with the usage and timing so far; only the first time counts."""
        if self._record is None:
            return
        route = self.route
        if route is not None and status is CallStatus.OK:
            route.state.worked()
        self._record.close(
            CallOutcome(
                status,
                http_status,
                self.usage,
                self.parts.clock.now(),
                route.target if route else None,
                route.served_model if route else None,
                (*self.attempts, *_skipped(self.plan)),
                self.timing,
            )
        )


def _skipped(plan: CallPlan) -> list[Attempt]:
    return [Attempt(route.target, None, "context_too_small") for route in plan.skipped]


def class_headers(decision: Decision) -> RawHeaders:
    """What every answer tells about the class of its call."""
    return [
        (b"x-headway-class", decision.lane.encode()),
        (b"x-headway-class-reason", decision.reason.encode()),
    ]


def _text(header: bytes | None) -> str | None:
    return None if header is None else header.decode("latin-1")
