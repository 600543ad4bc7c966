"""From exceptions to answers."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from starlette.exceptions import HTTPException

from gateway.api import errors
from gateway.api.errors import answer_for, status_of, stream_event
from gateway.core import errors as e


def every_kind(kind: type[e.HeadwayError] = e.HeadwayError) -> Iterator[type[e.HeadwayError]]:
    """The whole tree."""
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == "gateway.core.errors":
            yield from every_kind(below)


def made(kind: type[e.HeadwayError]) -> e.HeadwayError:
    """One of ``kind``."""
    if issubclass(kind, e.UpstreamError):
        return kind("words", target="t")
    if issubclass(kind, e.Busy):
        return kind("words", retry_after=0.2)
    return kind("words")


@pytest.mark.parametrize("kind", list(every_kind()), ids=lambda kind: kind.__name__)
def test_every_error_has_an_answer(kind: type[e.HeadwayError]) -> None:
    """A status of 4xx or 5xx, and an object with all four members."""
    answer = answer_for(made(kind))
    assert 400 <= answer.status < 600
    error = orjson.loads(answer.body)["error"]
    assert error["message"] == "words"
    assert errors.members_of(made(kind)) == error
    assert set(error) == {"message", "type", "param", "code"}


def test_client_errors_are_no_500() -> None:
    """What the caller got wrong is 4xx."""
    for kind in every_kind(e.ClientError):
        assert 400 <= status_of(made(kind)) < 500


def test_half_a_character_is_no_fault() -> None:
    """A target's words reach the caller as they came, in an answer and in a stream."""
    error = e.UpstreamFailed("cut \ud83d", target="t", status=500)
    assert b'"cut \\ud83d"' in answer_for(error).body
    assert b'"cut \\ud83d"' in stream_event(error)
    assert errors.members_of(error)["message"] == error.message


def test_foreign_exceptions_tell_nothing() -> None:
    """The text of an exception that is not ours stays inside."""
    answer = answer_for(ValueError("the prompt"))
    assert answer.status == 500
    assert b"prompt" not in answer.body


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (e.QueueFull("x", retry_after=0.1), b"1"),
        (e.QueueFull("x", retry_after=1000), b"60"),
        (e.StoreUnavailable("x"), b"1"),
        (e.UpstreamThrottled("x", target="t", status=429, retry_after=130), b"130"),
        (e.UpstreamThrottled("x", target="t", status=503), b"1"),
        (e.InvalidRequest("x"), None),
    ],
)
def test_retry_after(error: Exception, expected: bytes | None) -> None:
    """Our own advice is 1 to 60 seconds, a target's word is kept."""
    assert dict(answer_for(error).headers).get(b"retry-after") == expected


def test_should_retry() -> None:
    """Conflicts, used-up quotas and keys of ours that are refused are not worth another try."""
    quota = e.UpstreamThrottled("x", target="t", status=429, code="insufficient_quota")
    conflict = e.UpstreamRejected("x", target="t", status=409)
    credential = e.UpstreamCredential("x", target="t", status=401)
    for error in (e.Conflict("x"), quota, conflict, credential):
        assert dict(answer_for(error).headers)[b"x-should-retry"] == b"false"
    rejected = e.UpstreamRejected("x", target="t", status=422)
    for other in (rejected, e.Unavailable("x"), e.UpstreamFailed("x", target="t", status=500)):
        assert b"x-should-retry" not in dict(answer_for(other).headers)


def test_statuses_of_targets() -> None:
    """A target's status passes where it is true for the caller too."""
    assert status_of(e.UpstreamFailed("x", target="t", status=504)) == 504
    assert status_of(e.UpstreamFailed("x", target="t", status=529)) == 502
    assert status_of(e.UpstreamCredential("x", target="t", status=401)) == 502
    assert status_of(e.UpstreamRejected("x", target="t", status=422)) == 422
    assert status_of(e.UpstreamTimeout("x", target="t")) == 504


def test_router_errors_and_stream_events() -> None:
    """A wrong method keeps its Allow; a stream ends with the object as one event."""
    answer = answer_for(HTTPException(405, headers={"Allow": "GET"}))
    assert (answer.status, dict(answer.headers)[b"allow"]) == (405, b"GET")
    event = stream_event(e.StreamInterrupted("x", target="t"))
    assert event.startswith(b'data: {"error"')
    assert event.endswith(b"\n\n")


def test_one_module_makes_every_error() -> None:
    """No other file of the API builds the error object."""
    folder = Path(errors.__file__).parent
    makers = [f.name for f in folder.glob("*.py") if "schemas.errors" in f.read_text()]
    assert makers == ["errors.py"]
    told = orjson.loads(errors.refusal("no", "why"))["error"]
    assert told == {
        "message": "no",
        "type": "invalid_request_error",
        "param": None,
        "code": "why",
    }
