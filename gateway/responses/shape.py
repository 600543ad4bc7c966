"""The Response object: what it echoes of its request, and what a target's own one becomes."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
#: Members that are told as they were asked, and what they are when they were not.
_ECHOED: Mapping[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": None,
    "model": None,
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": None,
    "safety_identifier": None,
    "temperature": None,
    "text": None,
    "tool_choice": "auto",
    "tools": None,
    "top_logprobs": None,
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
#: Members of a target's own response that are not its to say.
_OURS = ("id", "created_at", "background", "previous_response_id", "store", "metadata")


def new_response(
    response_id: str,
    created_at: int,
    members: Mapping[str, Any],
    *,
    status: str,
    tier: str | None,
    background: bool = False,
) -> Json:
    """A response without output. ``members`` are those of the request."""
    told = {
        name: default if members.get(name) is None else members[name]
        for name, default in _ECHOED.items()
    }
    told["metadata"] = told["metadata"] or {}
    told["tools"] = told["tools"] or []
    told["text"] = {"format": {"type": "text"}, **(told["text"] or {})}
    told["reasoning"] = {"effort": None, "summary": None, **(told["reasoning"] or {})}
    return {
        "id": response_id,
        "object": "response",
        "created_at": created_at,
        "status": status,
        "background": background,
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "output": [],
        "service_tier": tier,
        "store": members.get("store") is not False,
        "usage": None,
        **told,
    }


def owned(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Json:
    """A target's own response as one of ours: the client knows it by our id, and we keep it."""
    response = {**ours, **theirs, **{name: ours[name] for name in _OURS}}
    response["service_tier"] = ours["service_tier"]
    return response


def as_failed(response: Mapping[str, Any], code: str, message: str) -> Json:
    """``response`` as it is when it could not be made."""
    return {**response, "status": "failed", "error": {"code": code, "message": message}}
