"""Values of this process that are read when somebody asks for its metrics."""

import asyncio
from collections.abc import Callable, Mapping

from gateway.core.clock import Clock
from gateway.core.lanes import Lane
from gateway.core.targets import EngineLoad
from gateway.routing.admission import Admission
from gateway.routing.state import TargetState
from gateway.telemetry.metrics import Labels, Metrics


def show_places(metrics: Metrics, admission: Admission) -> None:
    """Calls that run and that wait, per target and lane, and tasks; read when somebody asks."""

    def gauge(count: Callable[[str, Lane], int]) -> Callable[[], list[tuple[Labels, float]]]:
        return lambda: [
            ((lane.value, target, "", ""), count(target, lane))
            for target, lane in admission.places()
        ]

    def tasks() -> list[tuple[Labels, float]]:
        return [(("", "", "", ""), len(asyncio.all_tasks()))]

    metrics.gauge("headway_tasks", "Tasks of the event loop.", tasks)
    metrics.gauge("headway_calls_running", "Calls at a target.", gauge(admission.running))
    metrics.gauge("headway_calls_waiting", "Calls that wait for a place.", gauge(admission.waiting))


def show_targets(
    metrics: Metrics, states: Mapping[str, TargetState], clock: Clock, *, engines: bool
) -> None:
    """Which targets are left out now, and with ``engines`` what they tell of themselves.

    Of several processes one shows the engines, as values of all of them are added up.
    """

    def closed() -> list[tuple[Labels, float]]:
        now = clock.monotonic()
        return [(_label(name), float(state.wait(now) > 0)) for name, state in states.items()]

    def told(figure: Callable[[EngineLoad], float]) -> Callable[[], list[tuple[Labels, float]]]:
        return lambda: [
            (_label(name), figure(state.engine))
            for name, state in states.items()
            if state.engine is not None
        ]

    metrics.gauge("headway_target_closed", "Processes that leave a target out.", closed)
    if engines:
        for name, meaning, figure in _ENGINE:
            metrics.gauge(f"headway_engine_{name}", meaning, told(figure))


_ENGINE: tuple[tuple[str, str, Callable[[EngineLoad], float]], ...] = (
    ("running", "Sequences that a target's engine runs, by its own word.", lambda e: e.running),
    ("waiting", "Sequences that wait there.", lambda e: e.waiting),
    ("kv_use", "Share of its KV memory in use.", lambda e: e.kv_use),
)


def _label(target: str) -> Labels:
    return ("", target, "", "")
