"""Values that the metrics read when asked."""

from gateway.bootstrap.gauges import show_places, show_targets
from gateway.core.clock import SystemClock
from gateway.core.lanes import Lane
from gateway.core.targets import EngineLoad
from gateway.telemetry.metrics import Metrics
from tests.support.routes import Roads, a_target

LABEL = '{{lane="{}",target="a",model="",status=""}}'


async def test_places_and_targets() -> None:
    """Who runs, which target is left out, and what its engine says; engines only where wanted."""
    roads, metrics = Roads({"a": a_target(), "b": a_target()}), Metrics(["m"])
    show_places(metrics, roads.admission)
    show_targets(metrics, roads.router.states, SystemClock(), engines=True)
    await roads.admission.enter("a", Lane.INTERACTIVE)
    state = roads.router.states["a"]
    state.reported(EngineLoad(3, 2, 0.5))
    state.probed(healthy=False)
    page = metrics.text()
    assert f"headway_calls_running{LABEL.format('interactive')} 1" in page
    assert f"headway_target_closed{LABEL.format('')} 1" in page
    assert f"headway_engine_running{LABEL.format('')} 3" in page
    assert f"headway_engine_waiting{LABEL.format('')} 2" in page
    assert f"headway_engine_kv_use{LABEL.format('')} 0.5" in page
    assert page.count("headway_engine_running{") == 1
    without = Metrics(["m"])
    show_targets(without, roads.router.states, SystemClock(), engines=False)
    assert "headway_engine" not in without.text()
