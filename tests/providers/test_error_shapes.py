"""Errors in the words of vendors."""

from typing import Any

import orjson
import pytest

from gateway.providers.error_shapes import (
    credential_status,
    error_members,
    is_its_own,
    is_moderation,
    is_too_long,
    members_of,
    told_wait,
)

DETAIL = [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted", "input": 1}]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "words"}}, "words"),
        ({"error": "words", "error_type": "overloaded"}, "words"),
        ({"object": "error", "message": "words", "code": 400}, "words"),
        ({"detail": "words"}, "words"),
        ({"detail": DETAIL}, "body.stream_options: Extra inputs are not permitted"),
        (
            {"object": "error", "message": {"detail": DETAIL}, "type": "invalid_request_error"},
            "body.stream_options: Extra inputs are not permitted",
        ),
        ([{"error": {"code": 400, "message": "words", "status": "INVALID_ARGUMENT"}}], "words"),
        ({"detail": ["a", {"msg": "b"}]}, "a; b"),
    ],
)
def test_the_text_is_found(body: Any, message: str) -> None:
    """In every shape that a vendor is known to use."""
    assert members_of(orjson.dumps(body))["message"] == message


@pytest.mark.parametrize("body", [b"", b"<html>", b"7", b"[]", b"[7]", b'"words"'])
def test_what_holds_no_error(body: bytes) -> None:
    """It has no members."""
    assert members_of(body) == {}
    assert error_members(7) == {}


def test_the_type_beside_the_error() -> None:
    """TGI tells it there."""
    assert members_of(b'{"error":"x","error_type":"overloaded"}')["type"] == "overloaded"


def test_googles_details() -> None:
    """A bad key comes as a 400 with a reason, a time to wait as a text."""
    bad_key = {"details": [{"@type": "ErrorInfo", "reason": "API_KEY_INVALID"}]}
    assert credential_status(200, bad_key) == credential_status(400, bad_key) == 401
    assert credential_status(400, {"details": [7, {"reason": "OTHER"}]}) is None
    assert told_wait({"details": [{}, {"retryDelay": "34.5s"}]}) == 34.5
    assert told_wait({"details": [{"retryDelay": "soon"}]}) is None
    assert told_wait({}) is None


def test_codes_and_types_of_a_refused_key() -> None:
    """In a 200 or a 400; of other statuses the status is the word."""
    assert credential_status(200, {"code": "invalid_api_key", "type": "x"}) == 401
    assert credential_status(400, {"code": "x", "type": "permission_error"}) == 403
    assert credential_status(200, {"code": "INVALID_API_KEY"}) == 401
    assert credential_status(404, {"code": "invalid_api_key"}) is None
    assert credential_status(200, {"code": ["invalid_api_key"], "message": "auth_error"}) is None


def test_a_400_about_a_part_of_the_request_is_the_callers() -> None:
    """What an image's server does not permit is no refusal of our key; a bad key stays one."""
    denied = {"code": "permission_denied", "type": "invalid_request_error"}
    assert credential_status(400, denied) is None
    assert credential_status(400, {"code": "permission_denied", "param": "messages"}) is None
    assert credential_status(200, denied) == 403
    bad_key = {"code": "invalid_api_key", "type": "invalid_request_error"}
    assert credential_status(400, bad_key) == 401


def test_4xx_that_are_the_targets_fault() -> None:
    """A time-out of its own, and TGI's failed generation."""
    assert is_its_own(408, {})
    assert is_its_own(424, {"type": "generation"})
    assert not is_its_own(424, {"type": []})
    assert not is_its_own(400, {"type": "generation"})


def test_a_403_about_the_prompt() -> None:
    """OpenRouter says why in ``metadata``; any other 403 is about our key."""
    flagged = {"message": "x", "metadata": {"reasons": ["violence"], "flagged_input": "…"}}
    assert is_moderation(403, flagged)
    assert not is_moderation(403, {"message": "x"})
    assert not is_moderation(400, flagged)


@pytest.mark.parametrize(
    "members",
    [
        {"code": "context_length_exceeded"},
        {"type": "exceed_context_size_error", "message": "x"},
        {"message": "This model's maximum context length is 2048 tokens. However, you asked"},
        {"message": "The input (99 tokens) is longer than the model's context length (9 tokens)."},
        {"message": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097."},
        {"message": "the request exceeds the available context size, try increasing it"},
        {"message": "prompt is too long: 210000 tokens > 200000 maximum"},
        {"message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."},
    ],
)
def test_a_prompt_that_is_too_long(members: dict[str, Any]) -> None:
    """Every vendor has words of its own for it."""
    assert is_too_long(400, members)
    assert not is_too_long(400, {"message": "temperature must be at most 2"})
