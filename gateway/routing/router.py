"""Which targets may serve a model, in which order."""

from gateway.core.errors import ModelNotFound
from gateway.core.lanes import Lane
from gateway.policy.model import Policy, TargetPolicy
from gateway.routing.plan import Route


class Router:
    """The routes of every model and lane, worked out once.

    A lane with ``max_in_flight`` 0 on a target is not served there.
    """

    def __init__(self, policy: Policy) -> None:
        self._routes = {
            (model, lane): tuple(
                _route(name, policy.targets[name], model)
                for name in names
                if policy.targets[name].lanes.of(lane).max_in_flight > 0
            )
            for model, names in policy.models().items()
            for lane in Lane
        }
        self.models = tuple(policy.models())

    def plan(self, model: str, lane: Lane) -> tuple[Route, ...]:
        """The routes to try, in the file's order. Raises ModelNotFound; tells no other name."""
        routes = self._routes.get((model, lane))
        if not routes:
            raise model_not_found(model)
        return routes

    def route(self, target: str, model: str) -> Route:
        """The route of ``model``'s batch rows over one target. Raises ModelNotFound."""
        for route in self.plan(model, Lane.BATCH):
            if route.target == target:
                return route
        raise model_not_found(model)


def model_not_found(model: str) -> ModelNotFound:
    """The same answer for a model that does not exist and one the key may not use."""
    shown = model if len(model) <= 200 else model[:200] + "…"  # noqa: PLR2004 - room for any name
    return ModelNotFound(
        f"The model '{shown}' does not exist or you do not have access to it.", param="model"
    )


def _route(name: str, target: TargetPolicy, model: str) -> Route:
    return Route(
        name,
        target.models[model],
        target.kind,
        target.timeouts.to_timeouts(),
        target.retry,
        target.sends_priority,
        target.stream_usage,
        target.responses,
    )
