"""What a dispatcher knows of its targets, for the operator's page."""

from collections.abc import Mapping
from typing import Any

from gateway.dispatch.lane import TargetLane


def dispatcher_report(lanes: Mapping[str, TargetLane]) -> dict[str, Any]:
    """Of each target: our rows, the caps found, the step time and what it advises, late cost."""
    return {name: _report(lane) for name, lane in lanes.items()}


def _report(lane: TargetLane) -> dict[str, Any]:
    found = {
        "rows": len(lane.running),
        "prefilling": len(lane.prefilling),
        "works": lane.gate.healthy and not lane.rejected,
        "admits": lane.admits(),
        "caps": lane.pacer.caps().as_json(),
    }
    if lane.watch is not None:
        finding = lane.watch.finding()
        found["engine"] = None if finding is None else finding.as_json()
    if lane.purse is not None:
        purse = lane.purse
        found["late_cost"] = {
            "held": round(purse.total, 6),
            "max_cost": purse.cap.most,
            "window_s": purse.cap.seconds,
            "exhausted": purse.exhausted,
        }
    return found
