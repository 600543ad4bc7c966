"""The forms in which vendors tell an error, read into OpenAI's members.

Which vendor does what, and where that is written down: ``docs/providers/``.
"""

import re
from typing import Any

from gateway.core.exact_json import loads

_CREDENTIAL_REASONS = frozenset({"API_KEY_INVALID", "API_KEY_SERVICE_BLOCKED"})
#: Codes and types that speak of our key, with the status that belongs to them.
_CREDENTIAL_NAMES = {
    "invalid_api_key": 401,
    "authentication_error": 401,
    "auth_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "permission_denied": 403,
    "insufficient_permissions": 403,
}
_TOO_LONG_NAMES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_TOO_LONG_TEXT = re.compile(
    r"maximum context length|model's context length|exceeds? the available context size"
    r"|input token count .{0,40}exceeds the maximum|prompt is too long"
    r"|maximum model length|must have less than \d+ tokens"
    r"|inputs.{0,20} tokens \+ .{0,4}max_new_tokens",
    re.IGNORECASE,
)
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")
_OK = 200
_BAD_REQUEST = 400
_UNAUTHORIZED = 401
_FORBIDDEN = 403
_TIMED_OUT = 408
_TOO_LARGE = 413
_INVALID = 422
_DEPENDENCY = 424


def members_of(body: bytes) -> dict[str, Any]:
    """The error members of a JSON answer of any common shape; of HTML and others nothing."""
    try:
        value = loads(body)
    except ValueError:
        return {}
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return {}
    members = error_members(value.get("error") or value)
    if isinstance(value.get("error_type"), str) and not members.get("type"):
        members["type"] = value["error_type"]
    return members


def error_members(error: Any) -> dict[str, Any]:
    """Members of an error by itself; ``message`` is text whenever there is one in it."""
    if isinstance(error, str):
        return {"message": error}
    if not isinstance(error, dict):
        return {}
    said = error.get("message")
    if isinstance(said, dict):
        said = said.get("detail")
    elif said is None:
        said = error.get("detail")
    if isinstance(said, list):
        said = "; ".join(_one_detail(item) for item in said)
    return {**error, "message": said}


def _one_detail(item: Any) -> str:
    """A line of FastAPI's ``detail``: where, and what is wrong."""
    if not isinstance(item, dict):
        return str(item)
    place = item.get("loc")
    where = ".".join(str(part) for part in place) if isinstance(place, list) else ""
    return f"{where}: {item.get('msg', '')}" if where else str(item.get("msg", ""))


def names_of(members: dict[str, Any]) -> list[str]:
    """What the error is called: its code and its type, if they are texts; in lower case."""
    return [name.lower() for name in map(members.get, ("code", "type")) if isinstance(name, str)]


def credential_status(status: int, members: dict[str, Any]) -> int | None:
    """The status that would say that our key is not accepted, of one told by other means.

    Google's 400 tells it by a reason; relays, with a 400 or in a 200, by code or type. Words of a
    message count for nothing. A 400 about a part of the request speaks of what the caller may not.
    """
    reasons = [item.get("reason") for item in _details(members)]
    if any(isinstance(r, str) and r in _CREDENTIAL_REASONS for r in reasons):
        return _UNAUTHORIZED
    if status not in {_OK, _BAD_REQUEST}:
        return None
    named = names_of(members)
    told = next((_CREDENTIAL_NAMES[name] for name in named if name in _CREDENTIAL_NAMES), None)
    of_request = members.get("param") or "invalid_request_error" in named
    return None if status == _BAD_REQUEST and told == _FORBIDDEN and of_request else told


def is_its_own(status: int, members: dict[str, Any]) -> bool:
    """Whether a 4xx is the target's own failure: a time-out, or TGI's 424 for a generation."""
    return status == _TIMED_OUT or (status == _DEPENDENCY and members.get("type") == "generation")


def is_moderation(status: int, members: dict[str, Any]) -> bool:
    """Whether a 403 is about the prompt and not about our key, as OpenRouter's may be."""
    metadata = members.get("metadata")
    return status == _FORBIDDEN and isinstance(metadata, dict) and "reasons" in metadata


def is_too_long(status: int, members: dict[str, Any]) -> bool:
    """Whether the prompt does not fit into the model's context, in any vendor's words."""
    if not _TOO_LONG_NAMES.isdisjoint(
        name for name in (members.get("code"), members.get("type")) if isinstance(name, str)
    ):
        return True
    said = members.get("message")
    if status not in {_BAD_REQUEST, _TOO_LARGE, _INVALID} or not isinstance(said, str):
        return False
    return _TOO_LONG_TEXT.search(said) is not None


def told_wait(members: dict[str, Any]) -> float | None:
    """Seconds to wait that stand in the body, as Google's ``RetryInfo`` does."""
    for item in _details(members):
        delay = item.get("retryDelay")
        if isinstance(delay, str) and (match := _SECONDS.fullmatch(delay)):
            return float(match[1])
    return None


def _details(members: dict[str, Any]) -> list[dict[str, Any]]:
    details = members.get("details")
    if not isinstance(details, list):
        return []
    return [item for item in details if isinstance(item, dict)]
