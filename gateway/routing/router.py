"""Which targets may serve a model, in which order."""

from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

from gateway.core.errors import ModelNotFound
from gateway.core.lanes import Lane
from gateway.policy.model import ModelPolicy, Policy
from gateway.routing.affinity import DisplacedConversations
from gateway.routing.rank import rank_head, rank_members
from gateway.routing.route import Group, Route
from gateway.routing.state import TargetState


@dataclass(frozen=True, slots=True)
class ModelRoutes:
    """How a model is served in one lane: its targets in turn, and who takes over.

    ``displaced`` is None where conversations have no home.
    """

    groups: tuple[Group, ...]
    fallback: tuple[str, ...] = ()
    longer: str | None = None
    displaced: DisplacedConversations | None = None


class Router:
    """The routes of every model and lane, worked out once, and the state of every target.

    A lane with ``max_in_flight`` 0 on a target is not served there.
    """

    def __init__(self, policy: Policy) -> None:
        self.states = {name: TargetState(name, t) for name, t in policy.targets.items()}
        self.models = tuple(policy.served())
        self._known_as = policy.canonical()
        self._served = {
            lane: {
                model: self._model(policy, lane, model, names)
                for model, names in policy.served().items()
            }
            for lane in Lane
        }

    def troubles(self) -> dict[str, str]:
        """Target → in words, why calls do not go there as they should; others are left out."""
        return {name: why for name, state in self.states.items() if (why := state.trouble)}

    def find(self, model: str, lane: Lane) -> ModelRoutes | None:
        """How ``model`` is served; None when it is not."""
        found = self._served[lane].get(model)
        return found if found is not None and found.groups else None

    def plan(self, model: str, lane: Lane) -> tuple[Route, ...]:
        """The routes of a model, in the file's order. Raises ModelNotFound; tells no other name."""
        found = self.find(model, lane)
        if found is None:
            raise model_not_found(model)
        return tuple(route for group in found.groups for route in group)

    def route(self, target: str, model: str) -> Route:
        """The route of ``model``'s batch rows over one target. Raises ModelNotFound."""
        for route in self.plan(model, Lane.BATCH):
            if route.target == target:
                return route
        raise model_not_found(model)

    def _model(self, policy: Policy, lane: Lane, model: str, names: tuple[str, ...]) -> ModelRoutes:
        name = self._known_as.get(model, model)
        rules = policy.models.get(name) or ModelPolicy()
        routes = [
            self._route(policy, target, name, lane)
            for target in names
            if policy.targets[target].lanes.of(lane).max_in_flight > 0
        ]
        groups = _grouped(routes, {n: t.weight for n, t in policy.targets.items()})
        shared = rules.affinity and any(len(group) > 1 for group in groups)
        return ModelRoutes(
            groups,
            rules.fallback,
            rules.longer_context,
            DisplacedConversations() if shared else None,
        )

    def _route(self, policy: Policy, name: str, model: str, lane: Lane) -> Route:
        target = policy.targets[name]
        return Route(
            name,
            target.models[model],
            target.kind,
            target.timeouts.to_timeouts(),
            target.retry,
            self.states[name],
            rank_members(target, lane),
            rank_head(target, lane),
            target.stream_usage,
            target.responses,
            target.weight or 1.0,
            target.context,
            "full" if lane is Lane.BATCH else target.lanes.of(lane).spill,
            crc32(name.encode()),
        )


def _grouped(routes: list[Route], weights: Mapping[str, float | None]) -> tuple[Group, ...]:
    """Those with a weight together, where the first of them stands; each other on its own."""
    sharing = tuple(route for route in routes if weights[route.target] is not None)
    groups: list[Group] = []
    for route in routes:
        if route not in sharing:
            groups.append((route,))
        elif route is sharing[0]:
            groups.append(sharing)
    return tuple(groups)


def model_not_found(model: str) -> ModelNotFound:
    """The same answer for a model that does not exist and one the key may not use."""
    shown = model if len(model) <= 200 else model[:200] + "…"  # noqa: PLR2004 - room for any name
    return ModelNotFound(
        f"The model '{shown}' does not exist or you do not have access to it: GET /v1/models "
        "lists those you have.",
        param="model",
    )
