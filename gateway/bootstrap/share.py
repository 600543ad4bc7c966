"""What one of several gateway processes may do: its part of the places at each target."""

from dataclasses import dataclass
from pathlib import Path

from gateway.core.errors import ConfigError
from gateway.core.lanes import Lane
from gateway.policy.model import Policy
from gateway.policy.target import TargetPolicy

_LANES = (Lane.INTERACTIVE, Lane.ELASTIC)


@dataclass(frozen=True, slots=True)
class Share:
    """Process ``index`` of ``count`` that serve one port; ``folder`` is known to all of them."""

    index: int
    count: int
    folder: Path


def share_of(policy: Policy, index: int, count: int) -> Policy:
    """``policy`` with the part of one process of ``count``: all parts together are the whole.

    Raises ConfigError where a part would be nothing.
    """
    targets = {name: _target(name, target, index, count) for name, target in policy.targets.items()}
    return policy.model_copy(update={"targets": targets})


def _target(name: str, target: TargetPolicy, index: int, count: int) -> TargetPolicy:
    parts: dict[str, object] = {}
    for lane in _LANES:
        limits = target.lanes.of(lane)
        if 0 < limits.max_in_flight < count:
            raise ConfigError(
                f"{count} workers cannot share the {limits.max_in_flight} {lane} calls that target "
                f"{name} takes at once; set max_in_flight to {count} at least, or fewer workers"
            )
        part = {
            "max_in_flight": _part(limits.max_in_flight, index, count),
            "max_queue": _part(limits.max_queue, index, count),
        }
        parts[lane.value] = limits.model_copy(update=part)
    return target.model_copy(update={"lanes": target.lanes.model_copy(update=parts)})


def _part(whole: int, index: int, count: int) -> int:
    return whole // count + (index < whole % count)
