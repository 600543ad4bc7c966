"""What each lane may do at one target."""

from typing import Literal

from pydantic import Field, model_validator

from gateway.core.lanes import Lane
from gateway.core.load import LONGEST_GAP
from gateway.policy.values import Duration, PolicyModel

_MOST_ROWS = 512


class LaneLimits(PolicyModel):
    """What one lane may do on one target.

    ``max_in_flight`` calls run at once; up to ``max_queue`` more wait for at most ``max_wait``
    seconds. ``spill`` says when the next target takes a call that got no place: ``full``, when the
    queue is full or the wait is over; ``now``, instead of waiting; ``never``. A call that no target
    takes gets 429 with Retry-After.
    """

    max_in_flight: int = Field(default=8, ge=0)
    max_queue: int = Field(default=1024, ge=0)
    max_wait: Duration = 60.0
    spill: Literal["now", "full", "never"] = "full"


class LateCap(PolicyModel):
    """What late work may cost at one target: ``max_cost`` in each ``window``, counted in UTC."""

    max_cost: float = Field(gt=0, le=1e9)
    window: Duration = Field(default=86_400.0, ge=60)


class BatchLane(PolicyModel):
    """Batch rows at one target; ``max_in_flight`` of them at once.

    With ``auto`` (``batch: auto``) that number is found: from ``start`` on, between ``floor`` and
    ``max_in_flight``, as many as keep the gap between tokens of interactive calls at the target
    under ``itl_target``; unset, under 37 ms, and 32.5 ms at a target with ``priority``.

    A target that is ``shared`` is one engine that answers people too. While it does, ``prefill``
    rows at most wait for their first token there, otherwise ``prefill_idle``. Without a word here,
    targets of kind vllm, sglang and local are shared, and others whose ``base_url`` is not https.

    Rows go here ``when`` they come first (always), only while no interactive call is here (idle),
    or only while a deadline would be missed without this target (late); then ``late`` may say what
    that may cost, at the ``price`` of the target.
    """

    max_in_flight: int = Field(default=64, ge=0)
    auto: bool = False
    start: int = Field(default=32, ge=1)
    floor: int = Field(default=4, ge=1)
    itl_target: Duration | None = Field(default=None, gt=0, le=LONGEST_GAP)
    shared: bool | None = None
    prefill: int = Field(default=1, ge=1)
    prefill_idle: int = Field(default=8, ge=1)
    when: Literal["always", "idle", "late"] = "always"
    late: LateCap | None = None

    @model_validator(mode="before")
    @classmethod
    def _plain_auto(cls, value: object) -> object:
        if isinstance(value, str) and value != "auto":
            raise ValueError("the only word is auto; give a mapping for more")
        if not isinstance(value, str | dict | BatchLane):
            raise ValueError("give auto, or a mapping such as {max_in_flight: 64}")  # noqa: TRY004 - pydantic's
        found = {"auto": True} if value == "auto" else value
        if isinstance(found, dict) and found.get("auto") is True:
            return {"max_in_flight": _MOST_ROWS, **found}
        return found


class Lanes(PolicyModel):
    """Limits per lane. ``batch.max_in_flight`` is the batch size the dispatcher keeps filled."""

    interactive: LaneLimits = LaneLimits(max_in_flight=64)
    elastic: LaneLimits = LaneLimits(max_in_flight=16, max_wait=300.0)
    batch: BatchLane = BatchLane()

    def of(self, lane: Lane) -> LaneLimits:
        """The limits of a lane whose callers wait: interactive or elastic."""
        limits: LaneLimits = getattr(self, lane.value)
        return limits
