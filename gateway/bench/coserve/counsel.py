"""What flags of the engine would do, from the steps that were seen; simulated, also tried."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from gateway.bench.coserve.arms import Arm, Scene, figures_of, run_arm
from gateway.pacing.advice import Advice, EngineFlags, OfflineLoad, advise
from gateway.pacing.shared import Caps
from gateway.pacing.step_time import StepSample, StepTime, StepTimeFit
from gateway.simulator.profile import EngineProfile

_LEAST_SAMPLES = 20
_SECONDS = 150.0


@dataclass(frozen=True, slots=True)
class Counsel:
    """A fit, what follows from it, and where it was tried: gap p99 and offline tokens a second."""

    step: StepTime
    advice: Advice
    itl_target: float
    tried: tuple[tuple[float, float], tuple[float, float]] | None = None

    def lines(self) -> list[str]:
        """For people."""
        a, b, c, d = (1000 * getattr(self.step, name) for name in ("a", "b", "c", "d"))
        advice, target = self.advice, 1000 * self.itl_target
        now, then = 1000 * advice.gap_now, 1000 * advice.gap_then
        fit = f"{a:.2f} ms + {b:.3f} a row + {c:.6f} a cached token + {d:.4f} a prompt token"
        found = [
            f"Step: {fit}; the longest now {now:.0f} ms",
            f"For at most {target:.0f} ms: {advice.command()}",
            f"Then {then:.0f} ms, for {advice.cost:.0%} of what the engine does offline alone",
        ]
        if not advice.reached:
            found.append("No flags reach the target: the engine is too slow for it.")
        if self.tried is not None:
            (gap, offline), (gap_then, offline_then) = self.tried
            gaps = f"ITL p99 {_ms(gap)} becomes {_ms(gap_then)}"
            speed = f"offline {offline:,.0f} tok/s becomes {offline_then:,.0f}"
            found.append(f"Simulated beside interactive calls: {gaps}, {speed}")
        return found

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        step, advice = self.step, self.advice
        return {
            "step_ms": {name: 1000 * getattr(step, name) for name in ("a", "b", "c", "d")},
            "itl_target_ms": 1000 * self.itl_target,
            "reached": advice.reached,
            "flags": advice.command(),
            "longest_step_ms": {"now": 1000 * advice.gap_now, "then": 1000 * advice.gap_then},
            "offline_cost": advice.cost,
            "simulated": self.tried,
        }


def _ms(milliseconds: float) -> str:
    return "-" if math.isnan(milliseconds) else f"{milliseconds:.0f} ms"


def counsel_of(
    samples: Iterable[StepSample], profile: EngineProfile, scene: Scene, itl_target: float
) -> Counsel | None:
    """From samples of an engine with the flags of ``profile``; None when there are too few."""
    fit = StepTimeFit()
    for sample in samples:
        fit.learn(sample)
    if fit.samples < _LEAST_SAMPLES:
        return None
    load = OfflineLoad(scene.offline.prompt, scene.offline.output, profile.kv_tokens)
    flags = EngineFlags(profile.max_num_seqs, profile.max_num_batched_tokens)
    return Counsel(fit.found, advise(fit.found, load, flags, itl_target), itl_target)


def tried_counsel(scene: Scene, itl_target: float) -> Counsel | None:
    """Of a simulated engine, and what comes of it there."""
    scene = replace(scene, seconds=min(scene.seconds, _SECONDS))
    arm = Arm("Headway", caps=Caps(itl_target=itl_target))
    before = run_arm(arm, scene, 1)
    counsel = counsel_of(before.samples, scene.profile, scene, itl_target)
    if counsel is None:
        return None
    flags = counsel.advice.flags
    profile = scene.profile.with_flags(flags.max_num_seqs, flags.max_num_batched_tokens)
    then = replace(scene, profile=profile)
    after = figures_of(run_arm(replace(arm, policy="priority"), then, 1), then)
    now = figures_of(before, scene)
    tried = ((now.itl_p99, now.offline_tokens), (after.itl_p99, after.offline_tokens))
    return replace(counsel, tried=tried)
