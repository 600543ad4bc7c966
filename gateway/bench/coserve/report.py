"""What came out of a run: for people, and for programs."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from gateway.bench.checks import Check
from gateway.bench.coserve.arms import Scene
from gateway.bench.coserve.counsel import Counsel
from gateway.bench.coserve.figures import Spread
from gateway.bench.coserve.show import as_json, show_arms
from gateway.bench.table import show_checks


@dataclass(frozen=True, slots=True)
class Report:
    """Arms by scene, promises, advice; ``load`` is the scene as it was measured in real time."""

    scenes: Mapping[str, Mapping[str, Mapping[str, Spread]]]
    checks: Sequence[Check]
    counsel: Counsel | None
    load: Scene | None = None

    def as_json(self) -> str:
        """All of it; what is not a number, or has no end, is null."""
        report: dict[str, Any] = {"scenes": as_json(self.scenes)}
        report["checks"] = [
            {"promise": check.promise, "found": check.found, "ok": check.ok}
            for check in self.checks
        ]
        report["advice"] = self.counsel and self.counsel.as_json()
        report["load"] = self.load and _load(self.load)
        return json.dumps(_finite(report), indent=2, allow_nan=False)

    def show(self, console: Console) -> None:
        """Tables, then what else there is to say."""
        for name, arms in self.scenes.items():
            show_arms(console, name, arms)
        if self.load is not None:
            console.print(_load_line(self.load), highlight=False)
        show_checks(console, self.checks)
        told = self.counsel.lines() if self.counsel else ["Too few steps were seen for advice."]
        for line in told:
            console.print(line, highlight=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _load(scene: Scene) -> dict[str, Any]:
    return {
        "rate": scene.rate,
        "seconds": scene.seconds,
        "chat_tokens": [scene.chat.prompt, scene.chat.output],
        "offline_tokens": [scene.offline.prompt, scene.offline.output],
        "slo_ms": {"ttft": 1000 * scene.slo.ttft, "itl": 1000 * scene.slo.itl},
        "drawn": not scene.traces,
    }


def _load_line(scene: Scene) -> str:
    chat, offline, slo = scene.chat, scene.offline, scene.slo
    calls = f"{scene.rate:.2f} calls a second, {chat.prompt:g} tokens in and {chat.output:g} out"
    return (
        f"{'Calls from a trace' if scene.traces else calls}; "
        f"offline rows of {offline.prompt:g} and {offline.output:g}; SLO: "
        f"first token within {1000 * slo.ttft:,.0f} ms, mean gap {1000 * slo.itl:,.0f} ms"
    )
