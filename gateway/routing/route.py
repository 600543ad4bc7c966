"""One way to serve a call."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.core.targets import Timeouts
from gateway.policy.target import RetryPolicy
from gateway.routing.state import TargetState


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A target and the name it knows the model by. ``kind`` is the target's kind in the policy.

    ``asks_usage``: streams are asked for their usage with ``stream_options``.
    ``rank`` are the members of a body, and ``head`` the header lines, that tell the lane's rank.
    ``responses``: it has the Responses API itself.
    ``weight`` is its share among its like, ``context`` the longest prompt and answer in tokens if
    that is known, ``spill`` when the next target takes a call that finds no place; ``seed`` places
    conversations.
    """

    target: str
    served_model: str
    kind: str
    timeouts: Timeouts
    retry: RetryPolicy
    state: TargetState
    rank: Mapping[str, Any] = field(default_factory=dict)
    head: bytes = b""
    asks_usage: bool = True
    responses: bool = False
    weight: float = 1.0
    context: int | None = None
    spill: str = "full"
    seed: int = 0


#: Targets that share the calls of a model; most stand alone.
Group = tuple[Route, ...]
