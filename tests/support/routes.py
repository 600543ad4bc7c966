"""Routes and courses for tests of what happens along them."""

from typing import Any

from gateway.core.clock import Clock, SystemClock
from gateway.core.lanes import Lane
from gateway.core.targets import Timeouts
from gateway.policy.model import Policy
from gateway.policy.target import RetryPolicy, TargetPolicy
from gateway.routing.admission import Admission
from gateway.routing.call_plan import CallPlan, RouteRequest
from gateway.routing.route import Route
from gateway.routing.router import Router
from gateway.routing.state import TargetState

MODEL = "m"


def a_target(**members: Any) -> dict[str, Any]:
    """A policy entry that serves ``MODEL``."""
    return {"base_url": "http://x/v1", "models": [MODEL], **members}


def a_route(target: str = "t", served: str = MODEL, kind: str = "openai", **changes: Any) -> Route:
    """A route with a state of its own."""
    policy = TargetPolicy.model_validate(a_target())
    members: dict[str, Any] = {
        "timeouts": Timeouts(),
        "retry": RetryPolicy(),
        "state": TargetState(target, policy),
    }
    return Route(target, served, kind, **{**members, **changes})


class Roads:
    """A router and its gates over a policy; ``plan`` is the way of one call."""

    def __init__(self, targets: dict[str, Any], clock: Clock | None = None, **policy: Any) -> None:
        rules = Policy.model_validate({"targets": targets, **policy})
        self.clock = clock or SystemClock()
        self.router = Router(rules)
        self.admission = Admission(rules, self.clock, self.router.states)

    def plan(self, model: str = MODEL, *, only: set[str] | None = None, **request: Any) -> CallPlan:
        """The plan of a call for ``model``; ``only`` are the models that its key may use."""
        members = request.pop("members", {})
        asked = RouteRequest(
            model,
            request.pop("lane", Lane.INTERACTIVE),
            request.pop("tenant", "default"),
            request.pop("stream", False),
            members,
            request.pop("headers", {}),
            lambda name: only is None or name in only,
        )
        return CallPlan(self.router, self.admission, self.clock, asked)
