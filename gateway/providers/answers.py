"""What a target's answer is made of: a whole one, or a chunk of a stream."""

from collections.abc import Mapping
from typing import Any

from gateway.core.endpoints import EMBEDDINGS, RESPONSES
from gateway.core.errors import UpstreamFailed
from gateway.core.exact_json import loads, with_long_integers
from gateway.core.large_json import LARGE, read_large
from gateway.core.nesting import too_deep
from gateway.providers.broken_answers import unreadable_answer
from gateway.providers.failures import stream_failure
from gateway.providers.scrubber import Scrubber
from gateway.schemas.vectors import MALFORMED, as_wanted

_LISTS = {EMBEDDINGS: "data", RESPONSES: "output"}
_DELTA = (dict, type(None))


def plain_answer(data: bytes, endpoint: str, target: str, scrub: Scrubber) -> dict[str, Any]:
    """A whole answer as an object.

    Raises the classified error when it tells of one, UpstreamFailed when it is not what
    ``endpoint`` answers, as far as its choices or data tell. Integers beyond 64 bits are kept.
    """
    try:
        if len(data) > LARGE:
            value, deep = read_large(data, loads)
        else:
            value = loads(data)
            deep = too_deep(data, value)
    except ValueError:
        value, deep = None, False
    if not isinstance(value, dict) or deep:
        raise unreadable_answer(data, target)
    if error := error_in(value):
        raise stream_failure(target, error, scrub)
    items = value.get(_LISTS.get(endpoint, "choices"))
    if not isinstance(items, list) or not all(isinstance(i, dict) for i in items):
        raise UpstreamFailed("The target's answer has no choices or data.", target=target)
    if endpoint == EMBEDDINGS:
        return value  # thousands of numbers, none of them long
    exact: dict[str, Any] = with_long_integers(data, value)
    return exact


def choices_of(chunk: Any) -> list[dict[str, Any]]:
    """The choices of a chunk, none when it has none. Raises ValueError for what is no chunk."""
    if not isinstance(chunk, dict):
        raise ValueError("not a chunk")  # noqa: TRY004 - the value is wrong, not its use
    choices = chunk.get("choices")
    if choices is None:
        return []
    if isinstance(choices, list):
        for choice in choices:
            if not isinstance(choice, dict) or not isinstance(choice.get("delta"), _DELTA):
                break
        else:
            return choices
    raise ValueError("not a chunk")


def error_in(chunk: dict[str, Any]) -> Any:
    """The error that a chunk or an answer tells of in place of what was asked for, if any."""
    error = chunk.get("error")
    if not error and chunk.get("object") == "error":
        return chunk
    return error


def has_content(chunk: dict[str, Any]) -> bool:
    """Whether a chunk carries text, a tool call, a refusal or reasoning: not a role alone."""
    choices = chunk.get("choices")
    if not isinstance(choices, list):
        return False
    return any(_carries(choice) for choice in choices if isinstance(choice, dict))


def _carries(choice: dict[str, Any]) -> bool:
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return bool(choice.get("text"))
    return any(value for name, value in delta.items() if name != "role")


def with_vectors_as_wanted(
    members: Mapping[str, Any], answer: Mapping[str, Any], target: str
) -> dict[str, Any] | None:
    """An embeddings answer in the encoding that the request asks for; None when it is so already.

    Raises UpstreamFailed for vectors that are none.
    """
    try:
        return as_wanted(members, answer)
    except MALFORMED:
        raise UpstreamFailed("The target's vectors are malformed.", target=target) from None
