"""The plan of one call: which target is next, and the place that it takes there."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.core.clock import Clock
from gateway.core.errors import HeadwayError, Unavailable, UpstreamError
from gateway.core.lanes import Lane
from gateway.core.targets import Timeouts
from gateway.core.values import value
from gateway.routing.admission import Admission, Slot
from gateway.routing.affinity import affinity_key
from gateway.routing.load_balancing import choose_home, choose_quick
from gateway.routing.prompt_size import least_tokens
from gateway.routing.route import Group, Route
from gateway.routing.router import Router, model_not_found

_PATIENCE = 1.0  # seconds that an interactive call waits for a target that cools
_LOOK_SECONDS = 0.25  # how often a call that has waited looks whether its targets work again


@value
class RouteRequest:
    """What a call asks of routing. ``may_use`` tells which models its key may use."""

    model: str
    lane: Lane
    tenant: str
    stream: bool
    members: Mapping[str, Any]
    headers: Mapping[bytes, bytes]
    may_use: Callable[[str], bool]


class CallPlan:
    """Which targets serve one call, in which order, and how far it has come. Made once a call.

    ``key`` is the place of our key that the attempt under way uses; ``skipped`` are the routes not
    tried because the prompt is too long for them.
    """

    __slots__ = (
        "_admission",
        "_clock",
        "_conversation",
        "_displaced",
        "_entered_at",
        "_entered_slot",
        "_gates",
        "_longer",
        "_request",
        "_router",
        "_sent_at",
        "_slot",
        "_suits",
        "_waits_until",
        "groups",
        "key",
        "skipped",
    )

    def __init__(
        self, router: Router, admission: Admission, clock: Clock, request: RouteRequest
    ) -> None:
        found = router.find(request.model, request.lane)
        if found is None or not request.may_use(request.model):
            raise model_not_found(request.model)
        self.groups = found.groups
        for other in found.fallback:
            self.groups += _groups(router, request, other)
        self._router = router
        self._longer = found.longer
        self._displaced = found.displaced
        self._request = request
        self._gates = admission.gates(request.lane)
        self._admission = admission
        self._clock = clock
        self._conversation = (
            None
            if found.displaced is None
            else affinity_key(request.tenant, request.members, request.headers)
        )
        self._slot: Slot | None = None
        self._suits: Callable[[Route], bool] | None = None
        self._sent_at: float | None = None
        self._entered_at = 0.0
        self._entered_slot: Slot | None = None
        self._waits_until: float | None = None
        self.key = 0
        self.skipped: list[Route] = []

    def all_suit(self, suits: Callable[[Route], bool]) -> bool:
        """Whether every route that may come suits."""
        groups = self.groups
        if self._longer is not None:
            groups += _groups(self._router, self._request, self._longer)
        return all(suits(route) for group in groups for route in group)

    def keep_only(self, suits: Callable[[Route], bool]) -> bool:
        """Leave out, for good, what does not suit. Whether there is anything left."""
        self._suits = suits
        self.groups = _suiting(self.groups, suits)
        return bool(self.groups)

    async def wait_until_available(self) -> None:
        """Wait a little where all routes are cooling; a call of the elastic lane as long as it may.

        A target that fails or is down is not waited for.
        """
        patience = _PATIENCE
        if self._request.lane is Lane.ELASTIC:
            patience = max(g.limits.max_wait for g in self._gates.values())
        ends = self._clock.monotonic() + patience
        routes = [route for group in self.groups for route in group]
        while True:
            now = self._clock.monotonic()
            waits = [route.state.wait(now) for route in routes if route.state.cooling]
            soonest = min(waits, default=patience)
            if self.ready(routes, None) or now + soonest > ends:
                return
            await self._clock.sleep(soonest * random.uniform(1.0, 1.1))  # noqa: S311 - not at once

    async def wait_for_return(self) -> bool:
        """Whether a target can be tried after all.

        Of a call that waited for its place while its targets failed: it waits on for one of them to
        be asked again, as long as it may have waited for the place. One that just came does not.
        """
        if self._waits_until is None:
            return False
        routes = [route for group in self.groups for route in group]
        while (now := self._clock.monotonic()) < self._waits_until:
            if self.ready(routes, None):
                return True
            soonest = min(_LOOK_SECONDS, *(route.state.wait(now) for route in routes))
            await self._clock.sleep(soonest * random.uniform(1.0, 1.1))  # noqa: S311 - not at once
        return False

    def ready(self, routes: Sequence[Route], failed: HeadwayError | None) -> list[Route]:
        """Those of ``routes`` that may be tried now; after a failure, those that still help."""
        now = self._clock.monotonic()
        ready = [route for route in routes if route.state.available(now)]
        if failed is None:
            return ready
        return [route for route in ready if self.deadline(route) > now and self._fits(route)]

    def alone(self) -> Route | None:
        """The only route there is, with a place held, when that can be had at once."""
        groups = self.groups
        if len(groups) != 1 or len(groups[0]) != 1:
            return None
        route = groups[0][0]
        gate = self._gates[route.target]
        if not gate.free or not route.state.available(self._clock.monotonic()):
            return None
        self._slot = gate.take()
        return route

    async def next(self, routes: Sequence[Route], *, spill: bool) -> Route | None:
        """The route to try of ``routes``, which are open; its place is held for the next ``enter``.

        With ``spill``, one that has no place now and says so is passed over: None. Otherwise waits
        for a place and raises QueueFull when there is none.
        """
        gates = self._gates
        if len(routes) == 1:
            gate = gates[routes[0].target]
            if gate.free:
                self._slot = gate.take()
                return routes[0]
        free = [route for route in routes if gates[route.target].free]
        if free:
            route = free[0] if len(free) == 1 else self._choose(free)
            self._slot = gates[route.target].take()
        elif spill and all(route.spill == "now" for route in routes):
            return None
        else:
            lines = [gates[r.target] for r in routes]
            if self._waits_until is None:
                patience = max(gate.limits.max_wait for gate in lines)
                self._waits_until = self._clock.monotonic() + patience
            gate, self._slot = await self._admission.wait_for_place(lines)
            route = next(r for r in routes if gates[r.target] is gate)
        return route

    def _choose(self, routes: Sequence[Route]) -> Route:
        if self._conversation is not None and self._displaced is not None:
            return choose_home(self._conversation, routes, self._displaced)
        return choose_quick(routes, self._clock.monotonic(), stream=self._request.stream)

    async def enter(self, route: Route) -> Slot:
        """The place held for ``route``, or another one there."""
        slot, self._slot = self._slot, None
        if slot is None:
            slot = await self._admission.enter(route.target, self._request.lane)
        if self._request.stream:
            slot.prefill_begins()
        self._entered_slot = slot
        self._entered_at = self._clock.monotonic()
        self.key = route.state.credentials.pick(self._entered_at)
        return slot

    def answered(self, route: Route) -> None:
        """The attempt that entered last is the one that answers."""
        if self._entered_slot is not None:
            self._entered_slot.first_token()
        now = self._clock.monotonic()
        route.state.answered(self.key, now - self._entered_at, now, stream=self._request.stream)

    def refused(self, route: Route, error: UpstreamError) -> bool:
        """The attempt that entered last failed so. Whether another key may be tried at once."""
        return route.state.credentials.refused(self.key, error, self._clock.monotonic())

    def give_up_place(self) -> None:
        """Give back a place that was held and not used."""
        slot, self._slot = self._slot, None
        if slot is not None:
            slot.release()

    def timeouts(self, route: Route) -> Timeouts:
        """The limits of an attempt that begins now: all attempts of a call share the total one."""
        if self._sent_at is None:
            self._sent_at = self._clock.monotonic()
            return route.timeouts
        return replace(route.timeouts, total=max(self.deadline(route) - self._clock.monotonic(), 0))

    def deadline(self, route: Route) -> float:
        """The monotonic second at which ``route`` must have answered."""
        sent_at = self._clock.monotonic() if self._sent_at is None else self._sent_at
        return sent_at + route.timeouts.total

    def _fits(self, route: Route) -> bool:
        """Whether the prompt may fit the route's context. One that does not is noted."""
        if route.context is None or least_tokens(self._request.members) <= route.context:
            return True
        if route not in self.skipped:
            self.skipped.append(route)
        return False

    def longer(self, than: Route) -> tuple[Group, ...]:
        """Who may take a call that is too long for ``than``."""
        known = than.context or 0
        larger = tuple(
            (route,)
            for group in self.groups
            for route in group
            if known and (route.context or 0) > known
        )
        model, self._longer = self._longer, None
        if model is None:
            return larger
        groups = _groups(self._router, self._request, model)
        return larger + (groups if self._suits is None else _suiting(groups, self._suits))

    def unavailable(self) -> Unavailable:
        """The answer when no route may be tried now."""
        now = self._clock.monotonic()
        wait = min(route.state.wait(now) for group in self.groups for route in group)
        message = "No target of this model can be called now; it is asked again after a pause."
        return Unavailable(message, retry_after=wait, code="targets_unavailable")


def _groups(router: Router, request: RouteRequest, model: str) -> tuple[Group, ...]:
    """The targets of another model, if the caller may use it."""
    found = router.find(model, request.lane) if request.may_use(model) else None
    return () if found is None else found.groups


def _suiting(groups: tuple[Group, ...], suits: Callable[[Route], bool]) -> tuple[Group, ...]:
    kept = (tuple(route for route in group if suits(route)) for group in groups)
    return tuple(group for group in kept if group)
