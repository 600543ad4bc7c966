"""What a target's refusal means."""

from email.utils import formatdate

import orjson
import pytest

from gateway.core.errors import (
    UpstreamCredential,
    UpstreamError,
    UpstreamFailed,
    UpstreamRejected,
    UpstreamThrottled,
)
from gateway.providers.failures import failure, retry_after, stream_failure
from gateway.providers.scrubber import Scrubber

NOW = 1_760_000_000.0
SCRUB = Scrubber.of("https://api.example.com:8443/v1?key=SECRET1", "sk-SECRET2")


def failed(status: int, body: object = b"", **headers: str) -> UpstreamError:
    """The error for such an answer."""
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return failure("t", status, named, raw, SCRUB, lambda: NOW)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, UpstreamRejected),
        (401, UpstreamCredential),
        (402, UpstreamCredential),
        (403, UpstreamCredential),
        (404, UpstreamRejected),
        (429, UpstreamThrottled),
        (503, UpstreamThrottled),
        (500, UpstreamFailed),
        (498, UpstreamThrottled),
        (529, UpstreamThrottled),
        (408, UpstreamFailed),
        (302, UpstreamFailed),
    ],
)
def test_kinds(status: int, kind: type[UpstreamError]) -> None:
    """Each status has its kind, and the error remembers the status."""
    error = failed(status)
    assert type(error) is kind
    assert error.status == status


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "words", "type": "t", "param": "p", "code": "c"}},
        {"error": "words"},
        {"message": "words"},
        {"detail": "words"},
        [{"error": {"message": "words", "code": 400}}],
        {"object": "error", "message": "words", "code": 400},
    ],
)
def test_all_shapes_become_one(body: object) -> None:
    """Whatever form a vendor uses, the body passed on is an OpenAI error."""
    error = orjson.loads(failed(400, body).body)["error"]
    assert error["message"] == "words"
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] in {None, "c"}


def test_html_and_secrets_are_not_passed_on() -> None:
    """No page, key, address or query of a target reaches a caller."""
    assert b"<html" not in failed(500, b"<html>nginx</html>").body
    leaky = "POST https://api.example.com:8443/v1?key=SECRET1 with sk-SECRET2"
    error = failed(404, {"error": {"message": leaky, "code": "SECRET1"}})
    shown = error.body.decode() + str(error)
    assert not any(word in shown for word in ("SECRET", "example.com", "8443"))
    assert failed(401, {"error": {"message": "key sk-x"}}).body == b""


def test_quota_and_context_keep_their_code() -> None:
    """Two codes change what happens next, so they are kept on the error."""
    assert failed(429, {"error": {"message": "x", "code": "insufficient_quota"}}).code == (
        "insufficient_quota"
    )
    long = {"error": {"message": "x", "code": "context_length_exceeded"}}
    assert failed(400, long).code == "context_length_exceeded"
    assert failed(400, {"error": {"message": "x", "code": "other"}}).code == "upstream_rejected"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after": formatdate(NOW + 7, usegmt=True)}, 7.0),
        ({"retry-after": formatdate(NOW - 7, usegmt=True)}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "x"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], expected: float | None) -> None:
    """Seconds, dates and milliseconds; nonsense counts as nothing."""
    assert retry_after(headers, lambda: NOW) == expected


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"code": "insufficient_quota"}, UpstreamThrottled, 429),
        ({"type": "overloaded_error"}, UpstreamThrottled, 503),
        ({"code": "context_length_exceeded"}, UpstreamRejected, 400),
        ({"code": 404}, UpstreamRejected, 404),
        ({"code": "who_knows"}, UpstreamFailed, 502),
        ("only words", UpstreamFailed, 502),
        (7, UpstreamFailed, 502),
    ],
)
def test_error_events(error: object, kind: type[UpstreamError], status: int) -> None:
    """Codes with a known meaning get their status, all others are 502."""
    got = stream_failure("t", error, SCRUB)
    assert (type(got), got.status) == (kind, status)


@pytest.mark.parametrize(
    "told",
    [
        {"code": "invalid_api_key", "type": "invalid_request_error"},
        {"code": "invalid_request_error", "type": "authentication_error"},
        {"type": "permission_error"},
    ],
)
def test_our_key_may_be_refused_by_code_or_type(told: dict[str, str]) -> None:
    """In a 200, a 400 and the event of a stream; nothing of what was said is passed on."""
    said = {"message": "Incorrect API key: sk-x", **told}
    for error in (failed(400, {"error": said}), stream_failure("t", said, SCRUB)):
        assert type(error) is UpstreamCredential
        assert (error.body, "sk-x" in error.message) == (b"", False)


@pytest.mark.parametrize(
    ("code", "status"), [("invalid_api_key", 401), (402, 402), (403, 403), ("401", 401)]
)
def test_the_status_that_a_refused_key_would_have(code: str | int, status: int) -> None:
    """What the operator is told of a 200."""
    assert stream_failure("t", {"message": "x", "code": code}, SCRUB).status == status


@pytest.mark.parametrize(
    "error",
    [
        {"message": "invalid_api_key: authentication_error", "code": None},
        {"message": "x", "code": "model_not_found", "param": "invalid_api_key"},
        {"message": {"detail": "authentication_error"}},
        "invalid_api_key",
    ],
)
def test_words_about_keys_are_no_refused_key(error: object) -> None:
    """Only a code or a type says so: a message may hold anything, also the prompt."""
    assert type(stream_failure("t", error, SCRUB)) is UpstreamFailed
    assert type(failed(400, {"error": error})) is UpstreamRejected


def test_other_statuses_mean_what_they_say() -> None:
    """A type of errors about keys changes no 404, 429 or 500, and no flagged prompt."""
    said = {"message": "x", "type": "authentication_error"}
    kinds = {404: UpstreamRejected, 429: UpstreamThrottled, 500: UpstreamFailed}
    assert {s: type(failed(s, {"error": said})) for s in kinds} == kinds
    flagged = {"code": 403, "type": "permission_error", "metadata": {"reasons": ["violence"]}}
    for error in (failed(403, {"error": flagged}), stream_failure("t", flagged, SCRUB)):
        assert (type(error), error.status) == (UpstreamRejected, 400)


def test_a_page_is_kept_for_the_error_line() -> None:
    """Its text, at most 1 kB, without addresses and secrets; callers never see it."""
    page = b"<html>no backend at 10.1.2.3:8080, https://x.internal/a sk-SECRET2 " + b"." * 5000
    error = failed(502, page)
    assert error.text.startswith("<html>no backend at ***, *** *** ...")
    assert len(error.text.encode()) <= 1024
    assert "<html>" not in error.message
    assert failed(500, {"error": {"message": "x"}}).text == ""


def test_waits_are_bounded() -> None:
    """What is no time is none, and nobody waits for more than a day."""
    for name in ("retry-after-ms", "retry-after"):
        for odd in ("inf", "-inf", "nan", "1e999", "9" * 5000, "x"):
            assert retry_after({name: odd}, lambda: NOW) is None
        assert retry_after({name: "99999999999"}, lambda: NOW) == 86_400
    assert retry_after({"retry-after": formatdate(NOW + 1e9)}, lambda: NOW) == 86_400


def test_half_a_character_in_an_error_event_is_kept() -> None:
    """Servers cut words anywhere; the error is passed on all the same."""
    assert b'"message":"cut \\ud83d"' in failed(400, b'{"error":{"message":"cut \\ud83d"}}').body
    error = stream_failure("t", {"message": "cut \ud83d", "code": 503}, SCRUB)
    assert type(error) is UpstreamThrottled
    assert b'"message":"cut \\ud83d"' in error.body


@pytest.mark.parametrize("odd", [{}, [], 5.5, True, None])
def test_members_of_an_error_may_be_anything(odd: object) -> None:
    """An error whose code and type are no texts is an error all the same."""
    error = stream_failure("t", {"message": "d", "code": odd, "type": odd, "param": odd}, SCRUB)
    assert type(error) is UpstreamFailed
    assert orjson.loads(error.body)["error"]["message"] == "d"
    assert type(failed(500, {"error": {"code": odd, "type": odd}})) is UpstreamFailed


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 2048 tokens. However, you requested 3000."),
        (400, "The decoder prompt (length 3000) is longer than the maximum model length of 2048."),
        (400, "The input (3000 tokens) is longer than the model's context length (2048 tokens)."),
        (400, "the request exceeds the available context size, try increasing it"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed."),
        (
            413,
            "Prompt contains 33000 tokens, too large for model with 32768 maximum context length",
        ),
        (422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 3000"),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048."),
    ],
)
def test_a_prompt_that_is_too_long(status: int, message: str) -> None:
    """Whatever words a server has for it, one code stands for all."""
    error = failed(status, {"error": {"message": message, "code": status}})
    assert error.code == "context_length_exceeded"
    assert orjson.loads(error.body)["error"]["code"] == "context_length_exceeded"
    assert failed(500, {"error": {"message": message}}).code != "context_length_exceeded"


def test_addresses_of_others_are_not_told() -> None:
    """A message, a code, an event and a page name no inner address; pages of help stay."""
    said = "oops at http://10.1.2.3:21001/v1, see https://platform.openai.com/docs"
    shown = "oops at ***, see https://platform.openai.com/docs"
    members = {"message": said, "code": "at vllm.internal", "param": "x"}
    for error in (
        failed(500, {"error": members}),
        failed(400, {"detail": said}),
        stream_failure("t", members, SCRUB),
    ):
        told = orjson.loads(error.body)["error"]
        assert (error.message, told["message"]) == (shown, shown)
        assert told["code"] in {"at ***", None}
    assert failed(502, said.encode()).text == shown
