"""What is known about one call, before and after. No prompt and no answer in any of it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from gateway.core.lanes import Lane
from gateway.core.usage import Usage
from gateway.core.values import value


class CallStatus(StrEnum):
    """How a call ended.

    ``cancelled``: the caller left, or the work was called off. ``interrupted``: the answer had
    begun and did not come to its end, or the process that made the call died.
    """

    OK = "ok"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


@value
class Attempt:
    """One try at one target; ``status`` is its HTTP status if it answered, ``code`` our error."""

    target: str
    status: int | None = None
    code: str | None = None


@value
class CallTiming:
    """Seconds. ``ttft_s`` runs to the first content; ``itl_*`` are the gaps between contents.

    The 99th and 50th percentile are read from a histogram whose steps are a tenth of the value.
    """

    ttft_s: float | None = None
    gaps: int = 0
    itl_mean_s: float | None = None
    itl_p50_s: float | None = None
    itl_p99_s: float | None = None
    itl_max_s: float | None = None


@value
class CallIntent:
    """A call that is about to be made.

    ``started_at`` is Unix seconds. ``prompt_bytes`` is the length of the prompt's text (or of the
    body), ``max_completion`` the most tokens the answer may have, 0 when unknown: from these two
    the call is estimated if its process dies. ``job`` is the batch that a row belongs to,
    ``traceparent`` the caller's W3C trace header.
    """

    id: str
    tenant: str
    key_id: str
    lane: Lane
    reason: str
    endpoint: str
    model: str
    started_at: float
    prompt_bytes: int = 0
    max_completion: int = 0
    job: str | None = None
    traceparent: str | None = None


@value
class CallOutcome:
    """How it went. ``http_status`` is what the caller got: 499 when it left before the answer.

    ``target`` and ``served_model`` are those of the attempt that answered, None if none did.
    """

    status: CallStatus
    http_status: int
    usage: Usage
    ended_at: float
    target: str | None = None
    served_model: str | None = None
    attempts: tuple[Attempt, ...] = ()
    timing: CallTiming = CallTiming()


@value
class CallRecord:
    """The one record of a call.

    ``bound`` is set where a process died and the caller had named a limit: the completion tokens
    lie between ``usage.completion`` and this. Without it an interrupted call has no known bound.
    """

    intent: CallIntent
    outcome: CallOutcome
    bound: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As one line of a journal."""
        intent, outcome = self.intent, self.outcome
        usage, timing = outcome.usage, outcome.timing
        return {
            "close": intent.id,
            **_intent_members(intent),
            "ended_at": outcome.ended_at,
            "status": outcome.status,
            "http_status": outcome.http_status,
            "target": outcome.target,
            "served_model": outcome.served_model,
            "prompt": usage.prompt,
            "completion": usage.completion,
            "cached": usage.cached,
            "reasoning": usage.reasoning,
            "estimated": usage.estimated,
            "bound": self.bound,
            "attempts": [[a.target, a.status, a.code] for a in outcome.attempts],
            "ttft_s": timing.ttft_s,
            "gaps": timing.gaps,
            "itl_mean_s": timing.itl_mean_s,
            "itl_p50_s": timing.itl_p50_s,
            "itl_p99_s": timing.itl_p99_s,
            "itl_max_s": timing.itl_max_s,
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> "CallRecord":
        """Read what ``to_json`` wrote. Raises KeyError or ValueError for anything else."""
        outcome = CallOutcome(
            CallStatus(line["status"]),
            line["http_status"],
            Usage(
                line["prompt"],
                line["completion"],
                line["cached"],
                line["reasoning"],
                line["estimated"],
            ),
            line["ended_at"],
            line["target"],
            line["served_model"],
            tuple(Attempt(*attempt) for attempt in line["attempts"]),
            CallTiming(
                line["ttft_s"],
                line["gaps"],
                line["itl_mean_s"],
                line["itl_p50_s"],
                line["itl_p99_s"],
                line["itl_max_s"],
            ),
        )
        return cls(_intent_of(line, line["close"]), outcome, line["bound"] or None)


def intent_to_json(intent: CallIntent) -> dict[str, Any]:
    """As one line of a journal."""
    return {"open": intent.id, **_intent_members(intent)}


def intent_from_json(line: Mapping[str, Any]) -> CallIntent:
    """Read what ``intent_to_json`` wrote. Raises KeyError or ValueError for anything else."""
    return _intent_of(line, line["open"])


def _intent_members(intent: CallIntent) -> dict[str, Any]:
    return {
        "tenant": intent.tenant,
        "key": intent.key_id,
        "lane": intent.lane,
        "reason": intent.reason,
        "endpoint": intent.endpoint,
        "model": intent.model,
        "started_at": intent.started_at,
        "prompt_bytes": intent.prompt_bytes,
        "max_completion": intent.max_completion,
        "job": intent.job,
        "traceparent": intent.traceparent,
    }


def _intent_of(line: Mapping[str, Any], call_id: str) -> CallIntent:
    return CallIntent(
        call_id,
        line["tenant"],
        line["key"],
        Lane(line["lane"]),
        line["reason"],
        line["endpoint"],
        line["model"],
        line["started_at"],
        line["prompt_bytes"],
        line["max_completion"],
        line["job"],
        line.get("traceparent"),
    )
