"""What a gateway knows of the targets, for the operator's page."""

from collections.abc import Mapping
from typing import Any

from gateway.core.clock import Clock
from gateway.routing.admission import Admission
from gateway.routing.state import TargetState


def gateway_report(
    states: Mapping[str, TargetState], admission: Admission, clock: Clock
) -> dict[str, Any]:
    """Of each target: whether it is called, the calls of each lane, the engine's own word."""
    now = clock.monotonic()
    lanes: dict[str, dict[str, dict[str, int]]] = {name: {} for name in states}
    for name, lane in admission.places():
        calls = admission.running(name, lane)
        waiting = admission.waiting(name, lane)
        lanes[name][lane.value] = {"running": calls, "waiting": waiting}
    return {
        name: {
            "healthy": not state.down,
            "breaker_open": state.breaker.is_open,
            "closed_s": round(state.wait(now), 1),
            "lanes": lanes[name],
            "engine": None
            if state.engine is None
            else {
                "running": state.engine.running,
                "waiting": state.engine.waiting,
                "kv_use": round(state.engine.kv_use, 3),
            },
        }
        for name, state in states.items()
    }
