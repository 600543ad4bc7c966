"""A synchronous call of the Responses API: what its targets are asked, and how they are heard."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from gateway.api.calls import Call, CallParts
from gateway.api.errors import members_of
from gateway.api.response_relay import ChatRelay, NativeRelay, ResponseRelay
from gateway.core.endpoints import CHAT, RESPONSES
from gateway.core.errors import InvalidRequest
from gateway.core.lanes import Lane
from gateway.core.large_json import LARGE
from gateway.metering.counter import StreamMeter
from gateway.responses.events import Numbered, encoded, error_event
from gateway.responses.forms import chat_form, native_form
from gateway.responses.shape import as_failed, new_response
from gateway.routing.outgoing import outgoing_body
from gateway.routing.route import Route
from gateway.schemas.responses import ResponseRequest
from gateway.store.responses import new_response_id
from gateway.tenancy.keys import Caller

Json = dict[str, Any]


class ResponseCall(Call):
    """``items`` are the whole conversation. ``begun`` is the response before any output.

    Targets without the endpoint get a chat call; those are left out when chat cannot say what is
    asked.
    """

    def __init__(
        self,
        parts: CallParts,
        caller: Caller,
        asked: ResponseRequest,
        items: Sequence[Json],
        call_id: str,
    ) -> None:
        super().__init__(parts, caller, RESPONSES, asked.call, call_id)
        self.asked = asked
        self.begun: Json = {}
        self._items = items
        self._chat: Json | None = None
        self._relay: ResponseRelay | None = None

    async def prepare(self) -> None:
        """Before ``begin``: what that needs of a large conversation is made beside the loop."""
        if self.request.prompt_bytes > LARGE:
            with suppress(InvalidRequest):  # begin will say so, if it matters
                self._chat = await asyncio.to_thread(self._as_chat)

    def begin(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """As of every call. Raises InvalidRequest when no target can do what is asked."""
        super().begin(headers)
        now = self.parts.clock.now()
        tier = self.tier or ("flex" if self.decision.lane is Lane.ELASTIC else "default")
        self.begun = new_response(
            new_response_id(now), int(now), self.asked.members, status="in_progress", tier=tier
        )
        if self.plan.all_suit(_native):
            return
        try:
            self._chat = self._chat or self._as_chat()
        except InvalidRequest:
            if not self.plan.keep_only(_native):
                raise

    def _as_chat(self) -> Json:
        return chat_form(self.asked.members, self._items, stream=self.request.stream)

    def conversation(self) -> Mapping[str, Any]:
        """The whole conversation, which begins like those before it and those that follow."""
        members = self.asked.members
        start = {"role": "system", "content": members.get("instructions") or ""}
        return {**members, "messages": [start, *self._items]}

    @property
    def streamed(self) -> Json | None:
        """The response that was streamed to its end."""
        relay = self._relay
        return relay.response if relay is not None and relay.done else None

    def relay(self, route: Route) -> ResponseRelay:
        """What passes the stream of ``route`` on to the client."""
        scrub = self.parts.registry.scrubber(route.target)
        meter = StreamMeter(self.request.prompt_bytes, self.started)
        if route.responses:
            self._relay = NativeRelay(route.target, scrub, meter, self.begun)
        else:
            clock = self.parts.clock
            self._relay = ChatRelay(route.target, scrub, meter, self.begun, clock)
        return self._relay

    def error_event(self, error: BaseException) -> bytes:
        """The event that ends a broken stream: ``response.failed`` if the target called it that."""
        told = members_of(error)
        relay = self._relay
        if relay is not None and relay.failed:
            response = as_failed(relay.response, told["code"] or told["type"], told["message"])
            return encoded([relay.number("response.failed", response=response)])
        return encoded([error_event(Numbered() if relay is None else relay.number, told)])

    def asked_of(self, route: Route) -> tuple[str, bytes]:
        """Endpoint and body of an attempt at ``route``."""
        stream, size = self.request.stream, self.request.prompt_bytes
        if route.responses:
            members = native_form(self.asked.members, self._items, stream=stream)
            body = outgoing_body(members, route, stream=False, tier=self.tier, size=size)
            return RESPONSES, body
        assert self._chat is not None, "such a route is left out of the plan"
        return CHAT, outgoing_body(self._chat, route, stream=stream, tier=self.tier, size=size)


def _native(route: Route) -> bool:
    return route.responses
