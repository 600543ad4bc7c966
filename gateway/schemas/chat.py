"""The request of ``POST /v1/chat/completions``."""

from typing import Any

from gateway.core.errors import InvalidRequest
from gateway.schemas.requests import (
    LONGEST_ANSWER,
    SAMPLING,
    ModelRequest,
    between,
    boolean,
    build,
    read_object,
    required,
    wrong_type,
)

_CHECKS = {
    **SAMPLING,
    "max_tokens": between(1, LONGEST_ANSWER, whole=True),
    "max_completion_tokens": between(1, LONGEST_ANSWER, whole=True),
    "logprobs": boolean,
    "top_logprobs": between(0, 20, whole=True),
}


def parse_chat(body: bytes) -> ModelRequest:
    """Read and check a body. Unknown members stay as they are. Raises InvalidRequest."""
    members = read_object(body)
    request = build(members, _CHECKS, len(body), 1)
    _check_messages(required(members, "messages"))
    return request


def _check_messages(messages: Any) -> None:
    if not isinstance(messages, list):
        wrong_type("messages", "an array of objects")
    if not messages:
        raise InvalidRequest("'messages' must not be empty.", param="messages", code="empty_array")
    for position, message in enumerate(messages):
        name = f"messages[{position}]"
        if not isinstance(message, dict):
            wrong_type(name, "an object")
        if not isinstance(required_role(message, name), str):
            wrong_type(f"{name}.role", "a string")


def required_role(message: dict[str, Any], name: str) -> Any:
    """The role of a message. Raises MissingParameter naming its place."""
    return required({f"{name}.role": message.get("role")}, f"{name}.role")
