"""One way to serve a call."""

from dataclasses import dataclass

from gateway.core.targets import Timeouts
from gateway.policy.model import RetryPolicy


@dataclass(frozen=True, slots=True)
class Route:
    """A target and the name it knows the model by. ``kind`` is the target's kind in the policy.

    ``asks_usage``: streams are asked for their usage with ``stream_options``.
    ``responses``: it has the Responses API itself.
    """

    target: str
    served_model: str
    kind: str
    timeouts: Timeouts
    retry: RetryPolicy
    sends_priority: bool
    asks_usage: bool = True
    responses: bool = False
