"""The dispatcher's lanes, one a target: places, limits, and when rows may start there."""

import math
from functools import partial
from typing import Final

from gateway.core.clock import Clock
from gateway.core.settings import Settings
from gateway.dispatch.fleet import Fleet
from gateway.dispatch.gate import Gate
from gateway.dispatch.hurry import Hurry
from gateway.dispatch.lane import TargetLane
from gateway.dispatch.load import InteractiveLoad
from gateway.dispatch.purse import CostCap, Purse
from gateway.dispatch.rate import RateBudget
from gateway.pacing.advice import EngineFlags
from gateway.pacing.shared import Caps, SharedEngine
from gateway.pacing.watch import EngineWatch
from gateway.pacing.window import FixedWindow, Pacer
from gateway.policy.model import Policy
from gateway.policy.target import TargetPolicy
from gateway.store.keys import shard_of

_GATE_BASE: Final = 0.1
_FIRST_ROWS: Final = 16
_PROVIDERS: Final = ("openai", "azure")


class Lanes:
    """Makes lanes that make way for interactive ``load``, and hurry when work is late.

    Each takes its part of the caps beside the other dispatchers of the ``fleet``.
    """

    def __init__(
        self,
        settings: Settings,
        load: InteractiveLoad,
        hurry: Hurry,
        fleet: Fleet,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._load = load
        self._hurry = hurry
        self._fleet = fleet
        self._clock = clock

    def of(self, policy: Policy) -> dict[str, TargetLane]:
        """A lane for each target that takes batch rows."""
        lanes = {
            name: self._lane(name, target)
            for name, target in policy.targets.items()
            if target.lanes.batch.max_in_flight > 0 and target.batch_api is None
        }
        self._fleet.join(lanes)
        return lanes

    def _lane(self, name: str, target: TargetPolicy) -> TargetLane:
        """A provider's limits are unknown at first: it gets few rows to tell them in answers."""
        batch = target.lanes.batch
        waiting = partial(self._load.at, name)
        late = partial(self._hurry.any, [shard_of(model) for model in target.models])
        start = _FIRST_ROWS if target.kind in _PROVIDERS else math.inf
        budgets = self._budgets(target)
        share = self._fleet.at(name)
        pacer: Pacer = FixedWindow(batch.max_in_flight, share)
        if target.shared:
            pacer = SharedEngine(_caps(target), waiting, self._clock, late, share)
        lane = TargetLane(name, pacer, self._gate(name), budgets, self._clock, start=start)
        if target.shared:
            lane.watch = self._watch(name, target)
        if batch.when == "late":
            lane.admits = late
            lane.purse = _purse(target)
        elif batch.when == "idle":
            lane.admits = lambda: waiting() == (0, 0)
        self._load.listen(name, lane.hear)
        return lane

    def _watch(self, name: str, target: TargetPolicy) -> EngineWatch:
        part = self._fleet.at(name)

        def beside() -> float:
            known = self._load.at(name)
            return part.beside() + (known.calls - known.prefilling if known else 0)

        engine = target.engine
        flags = EngineFlags(engine.max_num_seqs, engine.max_num_batched_tokens)
        return EngineWatch(flags, target.itl_target, beside, self._clock)

    def _gate(self, name: str) -> Gate:
        settings = self._settings
        base = min(_GATE_BASE, settings.retry_base_seconds)
        return Gate(self._clock, base=base, patience=settings.retry_cap_seconds, name=name)

    def _budgets(self, target: TargetPolicy) -> list[RateBudget]:
        minute, limits = self._settings.rate_minute_seconds, target.limits
        return [
            RateBudget(minute, limits.requests_per_minute, limits.tokens_per_minute)
            for _ in range(max(1, len(target.api_keys)))
        ]


def _purse(target: TargetPolicy) -> Purse | None:
    cap = target.lanes.batch.late
    if cap is None or target.price is None:
        return None
    return Purse(CostCap(target.price.to_price(), cap.max_cost, int(cap.window)))


def _caps(target: TargetPolicy) -> Caps:
    batch = target.lanes.batch
    most = batch.max_in_flight
    return Caps(
        floor=batch.floor if batch.auto else most,
        start=batch.start if batch.auto else most,
        ceiling=most,
        prefill_busy=batch.prefill,
        prefill_idle=batch.prefill_idle,
        itl_target=target.itl_target,
    )
