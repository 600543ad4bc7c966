"""What came out, as text and as JSON."""

import json
import math
from dataclasses import fields, replace

import pytest
from rich.console import Console

from gateway.bench.checks import Check
from gateway.bench.coserve.arms import Scene
from gateway.bench.coserve.counsel import Counsel
from gateway.bench.coserve.figures import Figures, Spread
from gateway.bench.coserve.report import Report
from gateway.bench.coserve.slo import Slo
from gateway.bench.workload.trace import CHAT, TracedCall
from gateway.pacing.advice import Advice, EngineFlags
from gateway.pacing.step_time import StepTime
from gateway.simulator.profile import PROFILES

ARM = {field.name: Spread(2.0, 1.0, 3.0) for field in fields(Figures)}
SCENE = Scene(
    PROFILES["a100-8b"], rate=1.25, chat=CHAT.with_means(48, 12), slo=Slo(ttft=0.75, itl=0.2)
)
REPORT = Report({"full load": {"Headway": ARM}}, [Check("holds", "yes", ok=True)], None, SCENE)


def _shown(report: Report) -> str:
    console = Console(width=150, record=True, quiet=False)
    report.show(console)
    return console.export_text()


def test_a_measured_load_is_said() -> None:
    """Rate, lengths and SLO; that there were too few steps for advice, too."""
    text = _shown(REPORT)
    assert "1.25 calls a second, 48 tokens in and 12 out" in text
    assert "first token within 750 ms, mean gap 200 ms" in text
    assert "Too few steps" in text
    traced = replace(SCENE, traces=((TracedCall(0.0, 1, 1),),))
    assert "Calls from a trace" in _shown(replace(REPORT, load=traced))


def test_programs_get_all_of_it() -> None:
    """Simulated scenes have no measured load."""
    said = json.loads(REPORT.as_json())
    assert said["scenes"]["full load"]["Headway"]["slo"]["mean"] == 2
    assert said["checks"] == [{"promise": "holds", "found": "yes", "ok": True}]
    assert said["load"]["rate"] == 1.25
    assert said["load"]["slo_ms"] == {"ttft": 750, "itl": 200}
    assert json.loads(replace(REPORT, load=None).as_json())["load"] is None


def test_programs_never_get_odd_numbers() -> None:
    """What is not a number, or has no end, is null wherever it stands."""
    endless = ARM | {"ttft_p99": Spread(math.inf, 1.0, math.inf)}
    slow = replace(SCENE, slo=Slo(ttft=math.inf))
    step, flags = StepTime(0.005, 0.0, 0.0, 0.0), EngineFlags(1, 1)
    advice = Advice(flags, 0.01, 0.01, 100.0, 100.0, reached=True)
    counsel = Counsel(step, advice, 0.05, tried=((math.nan, 5.0), (math.nan, 6.0)))
    odd = Report({"full load": {"Headway": endless}}, [], counsel, slow)
    said = json.loads(odd.as_json(), parse_constant=pytest.fail)
    assert said["scenes"]["full load"]["Headway"]["ttft_p99"] == {
        "mean": None,
        "low": 1,
        "high": None,
    }
    assert said["load"]["slo_ms"]["ttft"] is None
    assert said["advice"]["simulated"] == [[None, 5.0], [None, 6.0]]
    assert not any("nan" in line for line in counsel.lines())
