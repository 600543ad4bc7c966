"""Minutes in a second."""

from collections.abc import Sequence

import pytest

from gateway.bench.coserve.arms import Arm, Scene, run_arm
from gateway.bench.coserve.host import EngineHost
from gateway.bench.coserve.virtual import Change, VirtualClock
from gateway.bench.workload.trace import TracedCall
from gateway.simulator.profile import PROFILES

SCENE = Scene(PROFILES["a100-8b"], seconds=60)


def test_calls_go_where_the_fewest_are() -> None:
    """Two that come together meet different engines and wait equally long."""
    calls = tuple(TracedCall(1.0, 500, 10) for _ in range(2))
    record = run_arm(Arm("alone"), Scene(SCENE.profile, seconds=40, traces=(calls,)), 1)
    assert record.calls[0].ttft == pytest.approx(record.calls[1].ttft)
    alone = SCENE.profile.seconds(0, 0, 500)
    assert record.calls[0].ttft == pytest.approx(alone)


def test_offline_work_begins_when_it_should_and_never_stops() -> None:
    """Nothing before; a second look each second after."""
    record = run_arm(Arm("offline", cap=8, interactive=False), SCENE, 1)
    assert all(running == 8 for at, _, running in record.windows if at >= SCENE.lead)
    assert all(tokens == 0 for at, tokens in record.progress if at < SCENE.lead)
    assert record.progress[-1][1] > 0


def test_changes_happen_when_they_should() -> None:
    """An engine that stops being fast does less from then on."""

    def slow(hosts: object) -> None:
        for host in hosts:  # type: ignore[attr-defined]
            host.engine.profile = host.engine.profile.faster(0.5)

    scene = Scene(SCENE.profile, seconds=100, changes=(Change(60, slow),))
    record = run_arm(Arm("offline", cap=32, interactive=False), scene, 1)
    done = {round(at): tokens for at, tokens in record.progress}
    assert (done[99] - done[62]) / 37 == pytest.approx((done[58] - done[25]) / 33 / 2, rel=0.15)


def test_the_clock_is_the_run_s_own() -> None:
    """Both readings are seconds since the run began."""
    clock = VirtualClock()
    clock.time = 3.0
    assert clock.now() == clock.monotonic() == 3.0


def test_an_engine_that_is_not_up_gets_nothing() -> None:
    """Neither calls nor rows, until it is."""
    met: list[int] = []

    def look(hosts: Sequence[EngineHost]) -> None:
        met.append(hosts[0].engine.running)
        hosts[0].up = True

    scene = Scene(SCENE.profile, seconds=80, absent=1, changes=(Change(50, look), Change(79, look)))
    run_arm(Arm("cap", cap=8), scene, 1)
    assert met[0] == 0
    assert met[1] >= 8
