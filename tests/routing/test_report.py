"""A gateway's view of its targets."""

from gateway.core.errors import UpstreamRefused
from gateway.core.lanes import Lane
from gateway.core.targets import EngineLoad
from gateway.policy.model import Policy
from gateway.routing.admission import Admission
from gateway.routing.report import gateway_report
from gateway.routing.router import Router
from tests.support.clock import ManualClock


async def test_state_calls_and_the_engines_word() -> None:
    """As they are at that moment."""
    clock = ManualClock()
    breaker = {"failures": 2, "pause": 4}
    target = {"base_url": "http://127.0.0.1:1/v1", "models": ["m"], "breaker": breaker}
    policy = Policy.model_validate({"targets": {"up": target, "other": target}})
    router = Router(policy)
    admission = Admission(policy, clock, router.states)
    await admission.enter("up", Lane.INTERACTIVE)
    router.states["up"].reported(EngineLoad(3, 1, 0.25))
    for _ in range(2):
        router.states["up"].failed(UpstreamRefused("no", target="up"), clock.monotonic())
    router.states["other"].probed(healthy=False)
    found = gateway_report(router.states, admission, clock)
    assert found["up"]["breaker_open"]
    assert found["up"]["closed_s"] > 0
    assert found["up"]["engine"] == {"running": 3, "waiting": 1, "kv_use": 0.25}
    assert found["up"]["lanes"]["interactive"] == {"running": 1, "waiting": 0}
    assert found["up"]["lanes"]["elastic"] == {"running": 0, "waiting": 0}
    assert (found["other"]["healthy"], found["other"]["engine"]) == (False, None)
