"""Calls for tests of the meter."""

from typing import Any

from gateway.core.lanes import Lane
from gateway.core.usage import Usage
from gateway.metering.record import Attempt, CallIntent, CallOutcome, CallStatus, CallTiming

# 2026-11-30 05:00:00 UTC
HOUR_START = 1_796_014_800.0


def an_intent(call_id: str = "req_1", **changes: Any) -> CallIntent:
    """An interactive chat call of tenant t1."""
    members: dict[str, Any] = {
        "id": call_id,
        "tenant": "t1",
        "key_id": "k1",
        "lane": Lane.INTERACTIVE,
        "reason": "default",
        "endpoint": "/v1/chat/completions",
        "model": "m1",
        "started_at": HOUR_START,
        "prompt_bytes": 400,
        "max_completion": 64,
    }
    return CallIntent(**{**members, **changes})


def an_outcome(usage: Usage | None = None, **changes: Any) -> CallOutcome:
    """A good end with 10 + 5 tokens."""
    members: dict[str, Any] = {
        "status": CallStatus.OK,
        "http_status": 200,
        "usage": usage or Usage(10, 5),
        "ended_at": HOUR_START + 1.5,
        "target": "up1",
        "served_model": "m1",
        "attempts": (Attempt("up1", 200),),
        "timing": CallTiming(0.2, 4, 0.05, 0.05, 0.06, 0.061),
    }
    return CallOutcome(**{**members, **changes})
