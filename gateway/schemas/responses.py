"""The request of ``POST /v1/responses``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gateway.core.errors import InvalidRequest
from gateway.schemas.requests import (
    LONGEST_ANSWER,
    TIERS,
    Check,
    ModelRequest,
    between,
    boolean,
    build,
    metadata,
    missing,
    no_text,
    one_of,
    read_object,
    required,
    text,
    wrong_type,
)

SOONEST = "soonest"
_HOUR = 3600.0
#: Seconds that a background response may take.
WINDOWS: Mapping[str, float] = {SOONEST: _HOUR, "2h": 2 * _HOUR, "8h": 8 * _HOUR}
_LEAST_OUTPUT = 16
#: Members that say how a response is kept: the gateway does that, no target.
KEPT_HERE = frozenset(
    {
        "background",
        "background_options",
        "metadata",
        "previous_response_id",
        "store",
        "stream",
        "stream_options",
    }
)
#: State that a target would keep for us: it would be shared by all tenants.
_KEPT_ELSEWHERE = ("conversation", "prompt")


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """A checked request. ``input`` has one item per message, call or output.

    ``window`` is the name of the completion window of a background response, else None.
    """

    call: ModelRequest
    input: list[dict[str, Any]]
    previous: str | None
    store: bool
    window: str | None

    @property
    def members(self) -> dict[str, Any]:
        """The body as it came."""
        return self.call.members

    @property
    def background(self) -> bool:
        """Whether it is answered later."""
        return self.window is not None


def parse_response(body: bytes) -> ResponseRequest:
    """Read and check a body. Unknown members stay as they are. Raises InvalidRequest."""
    members = read_object(body)
    required(members, "model")
    previous = members.get("previous_response_id")
    items = input_items(required(members, "input"))
    if not items and previous is None:
        raise InvalidRequest("'input' must not be empty.", param="input", code="empty_array")
    call = build(members, _CHECKS, len(body), 1)
    call = replace(call, max_completion=members.get("max_output_tokens") or 0)
    for name in _KEPT_ELSEWHERE:
        if members.get(name) is not None:
            raise _unsupported(name)
    store = members.get("store") is not False
    window = _window(members)
    if window is not None and not store:
        raise InvalidRequest(
            "A background response is stored: leave out 'store'.",
            param="store",
            code="invalid_value",
        )
    return ResponseRequest(call, items, previous, store, window)


def parse_response_row(body: bytes) -> ModelRequest:
    """Read and check a call that is answered later, by itself: it goes on from no other one."""
    request = parse_response(body)
    for name in ("previous_response_id", "background"):
        if request.members.get(name):
            raise _unsupported(name)
    return request.call


def alone(request: ResponseRequest, items: list[dict[str, Any]]) -> ModelRequest:
    """The call with the whole conversation, ``items``, in it: it goes on from no other one."""
    if request.previous is None:
        return request.call
    members = {k: v for k, v in request.members.items() if k != "previous_response_id"}
    return replace(request.call, members={**members, "input": items})


def input_items(value: Any) -> list[dict[str, Any]]:
    """The items of ``input``; a text is one message. Raises InvalidRequest."""
    if isinstance(value, str):
        content = [{"type": "input_text", "text": value}]
        return [{"type": "message", "role": "user", "content": content}]
    if not isinstance(value, list):
        wrong_type("input", "a string or an array of objects")
    return [_item(item, f"input[{position}]") for position, item in enumerate(value)]


def _item(item: Any, name: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        wrong_type(name, "an object")
    kind = item.get("type")
    if kind is None:
        if item.get("role") is None:
            missing(f"{name}.type")
        kind = "message"
    if not isinstance(kind, str):
        wrong_type(f"{name}.type", "a string")
    if kind == "message":
        _check_message(item, name)
    return {**item, "type": kind}


def _check_message(item: Mapping[str, Any], name: str) -> None:
    for member in ("role", "content"):
        if item.get(member) is None:
            missing(f"{name}.{member}")
    if not isinstance(item["role"], str):
        wrong_type(f"{name}.role", "a string")
    if not isinstance(item["content"], str | list):
        wrong_type(f"{name}.content", "a string or an array of objects")


def _window(members: Mapping[str, Any]) -> str | None:
    """The completion window of a background response. Raises InvalidRequest."""
    options = members.get("background_options") or {}
    if not isinstance(options, dict):
        wrong_type("background_options", "an object")
    param = "background_options.completion_window"
    asked = options.get("completion_window")
    if asked is not None:
        one_of(*WINDOWS)(param, asked)
    window: str = asked or SOONEST
    if not members.get("background"):
        if window != SOONEST:
            raise InvalidRequest(
                f"'{param}' needs 'background' to be true.", param=param, code="invalid_value"
            )
        return None
    if window != SOONEST and members.get("stream"):
        raise InvalidRequest(
            f"A response with the window '{window}' cannot be streamed.",
            param="stream",
            code="invalid_value",
        )
    return window


def _objects(name: str, value: Any) -> None:
    if not isinstance(value, list):
        wrong_type(name, "an array of objects")
    for position, item in enumerate(value):
        place = f"{name}[{position}]"
        if not isinstance(item, dict):
            wrong_type(place, "an object")
        if not isinstance(kind := item.get("type"), str):
            no_text(f"{place}.type", kind)


def _object(name: str, value: Any) -> None:
    if not isinstance(value, dict):
        wrong_type(name, "an object")


def _texts(name: str, value: Any) -> None:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        wrong_type(name, "an array of strings")


def _unsupported(name: str) -> InvalidRequest:
    return InvalidRequest(
        f"'{name}' is not supported here.", param=name, code="unsupported_parameter"
    )


_CHECKS: Mapping[str, Check] = {
    "background": boolean,
    "include": _texts,
    "instructions": text,
    "max_output_tokens": between(_LEAST_OUTPUT, LONGEST_ANSWER, whole=True),
    "max_tool_calls": between(1, LONGEST_ANSWER, whole=True),
    "metadata": metadata,
    "parallel_tool_calls": boolean,
    "previous_response_id": text,
    "reasoning": _object,
    "service_tier": one_of(*TIERS),
    "store": boolean,
    "stream": boolean,
    "temperature": between(0, 2),
    "text": _object,
    "tools": _objects,
    "top_logprobs": between(0, 20, whole=True),
    "top_p": between(0, 1),
    "truncation": one_of("auto", "disabled"),
    "user": text,
}
