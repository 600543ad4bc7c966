"""What a job may be asked for, and what it looks like."""

from typing import Any

import orjson
import pytest

from gateway.core.errors import InvalidRequest
from gateway.core.usage import Usage
from gateway.schemas.chat import parse_chat
from gateway.schemas.job import JobStatus, deferred_call, job_object, parse_job_create

NOW = 1_800_000_000.0
CALL = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def _parse(**members: Any) -> Any:
    body = {"endpoint": "/v1/chat/completions", "body": CALL, **members}
    return parse_job_create(orjson.dumps(body), NOW)


def test_what_need_not_be_said() -> None:
    """A day, at once, priority 0."""
    wanted = _parse()
    assert (wanted.window_seconds, wanted.delay_seconds, wanted.priority) == (86_400, 0, 0)
    assert wanted.request.members == CALL


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("90s", 90),
        ("2h", 7200),
        (30, 30),
        (1.5, 1.5),
        (NOW + 60, 60),
        ("2027-01-15T08:01:00Z", 60),
        ("2027-01-15T09:01:00+01:00", 60),
    ],
)
def test_times(value: object, seconds: float) -> None:
    """Durations, seconds, Unix times and RFC 3339, for the deadline and the start."""
    assert _parse(deadline=value).window_seconds == seconds
    assert _parse(completion_window=value).window_seconds == seconds
    assert _parse(not_before=value).delay_seconds == seconds


def test_a_start_in_the_past_is_now() -> None:
    """Nothing to wait for."""
    assert _parse(not_before=NOW - 5).delay_seconds == 0


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"endpoint": None}, "endpoint"),
        ({"endpoint": "/v1/files"}, "endpoint"),
        ({"body": None}, "body"),
        ({"body": "text"}, "body"),
        ({"deadline": "soon"}, "deadline"),
        ({"deadline": "2027-01-15T08:01:00"}, "deadline"),
        ({"deadline": 0.5}, "deadline"),
        ({"deadline": "31d"}, "deadline"),
        ({"deadline": True}, "deadline"),
        ({"deadline": NOW - 5}, "deadline"),
        ({"deadline": "1h", "completion_window": "1h"}, "deadline"),
        ({"completion_window": []}, "completion_window"),
        ({"not_before": "2d"}, "not_before"),
        ({"priority": 10}, "priority"),
        ({"priority": "9"}, "priority"),
        ({"metadata": {"k": 1}}, "metadata.k"),
    ],
)
def test_refused_members(members: dict[str, Any], param: str) -> None:
    """400 naming the member."""
    with pytest.raises(InvalidRequest) as caught:
        _parse(**members)
    assert caught.value.param == param


@pytest.mark.parametrize(
    "call",
    [
        {"messages": CALL["messages"]},
        {**CALL, "messages": []},
        {**CALL, "temperature": 3},
        {**CALL, "stop": [1]},
    ],
)
def test_the_call_is_checked_as_at_its_endpoint(call: dict[str, Any]) -> None:
    """The same fault, the same words."""
    with pytest.raises(InvalidRequest) as there:
        parse_chat(orjson.dumps(call))
    with pytest.raises(InvalidRequest) as here:
        _parse(body=call)
    assert (here.value.message, here.value.param, here.value.code) == (
        there.value.message,
        there.value.param,
        there.value.code,
    )


def test_nothing_is_streamed() -> None:
    """Neither in a job nor in a deferred call; an embeddings call has no such member."""
    call = {**CALL, "stream": True}
    with pytest.raises(InvalidRequest) as caught:
        _parse(body=call)
    assert (caught.value.param, caught.value.code) == ("stream", "streaming_unsupported")
    with pytest.raises(InvalidRequest):
        deferred_call("/v1/chat/completions", parse_chat(orjson.dumps(call)))
    text = {"model": "m", "input": "x", "stream": True}
    assert _parse(endpoint="/v1/embeddings", body=text).request.stream is False


def test_equal_requests_have_equal_digests() -> None:
    """The order of members says nothing, everything else does."""
    turned = dict(reversed(CALL.items()))
    assert _parse(body=turned).digest == _parse().digest
    others = [_parse(priority=1), _parse(metadata={"a": "b"}), _parse(deadline="1h")]
    assert len({wanted.digest for wanted in [_parse(), *others]}) == 4


def test_deep_nesting_is_refused() -> None:
    """A body that could not be written again is the caller's fault."""
    text = b'{"endpoint":"/v1/chat/completions","body":{"x":' + b"[" * 400 + b"]" * 400 + b"}}"
    with pytest.raises(InvalidRequest):
        parse_job_create(text, NOW)


def test_members_of_the_object() -> None:
    """All are there; usage and the way to the result once there is one."""
    fixed = {
        "id": "job_1",
        "status": JobStatus.QUEUED,
        "endpoint": "/v1/embeddings",
        "model": "m",
        "priority": 0,
        "created_at": 1,
        "expires_at": 2,
    }
    waiting = job_object(fixed, Usage())
    assert (waiting["object"], waiting["usage"], waiting["result_url"]) == ("job", None, None)
    done = job_object({**fixed, "status": JobStatus.COMPLETED, "completed_at": 2}, Usage(1, 2))
    assert (done["completed_at"], done["failed_at"]) == (2, None)
    assert done["usage"]["total_tokens"] == 3
    assert done["result_url"] == "/v1/jobs/job_1/result"
