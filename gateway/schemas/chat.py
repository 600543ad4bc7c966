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
    no_text,
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
        if not isinstance(message, dict):
            wrong_type(f"messages[{position}]", "an object")
        if not isinstance(role := message.get("role"), str):
            no_text(f"messages[{position}].role", role)
