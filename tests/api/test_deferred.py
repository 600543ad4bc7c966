"""``Prefer: respond-async`` on the inference endpoints of a running gateway."""

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from gateway.api.deferred import prefers_async
from tests.support.gateway import chat_body
from tests.support.serve import KEY, RunningHeadway, headway, one_target, wait_for
from tests.support.upstream import ScriptedUpstream

CALLS = {
    "/chat/completions": chat_body(max_tokens=4),
    "/completions": {"model": "m", "prompt": "one two", "max_tokens": 4},
    "/embeddings": {"model": "m", "input": ["one", "two"]},
    "/responses": {"model": "m", "input": "one two", "max_output_tokens": 16},
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHeadway]:
    """A gateway with its dispatcher."""
    upstream = ScriptedUpstream().start()
    with headway(tmp_path_factory.mktemp("deferred"), one_target(upstream.url)) as process:
        yield process
    upstream.stop()


def _post(running: RunningHeadway, path: str, body: Any, **headers: str) -> httpx.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    with running.client() as client:
        return client.post(path, json=body, headers=sent)


def _ended(running: RunningHeadway, answer: httpx.Response) -> httpx.Response:
    """The result, once it is there."""
    with running.client() as client:
        path = answer.headers["location"].removeprefix("/v1")
        wait_for(lambda: client.get(path).json()["status"] == "completed", 10, "its end")
        return client.get(f"{path}/result")


@pytest.mark.parametrize("path", CALLS)
def test_the_answer_is_that_of_the_call(running: RunningHeadway, path: str) -> None:
    """202 at once, and later the body that the synchronous call has."""
    answer = _post(running, path, CALLS[path], prefer="respond-async, wait=10")
    assert answer.status_code == 202
    assert answer.headers["preference-applied"] == "respond-async"
    assert answer.json()["endpoint"] == f"/v1{path}"
    result = _ended(running, answer)
    plain = _post(running, path, CALLS[path])
    assert (result.status_code, plain.status_code) == (200, 200)
    assert _known(result.json()) == _known(plain.json())


def test_nothing_is_asynchronous_unasked(running: RunningHeadway) -> None:
    """Other preferences, and none, are answered with 200."""
    for prefer in ("wait=10", "return=minimal", "respond-asynchronously"):
        answer = _post(running, "/completions", CALLS["/completions"], prefer=prefer)
        assert answer.status_code == 200
        assert "preference-applied" not in answer.headers


def test_streams_and_faults(running: RunningHeadway) -> None:
    """A stream is refused clearly, and bad bodies exactly as without the preference."""
    streamed = chat_body(stream=True)
    answer = _post(running, "/chat/completions", streamed, prefer="respond-async")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "stream")
    faults: list[Any] = [{}, {"model": "m"}, chat_body(temperature=9), chat_body(model="unknown")]
    for body in faults:
        later = _post(running, "/chat/completions", body, prefer="respond-async")
        now = _post(running, "/chat/completions", body)
        assert (later.status_code, later.json()) == (now.status_code, now.json())


def test_a_response_that_goes_on(running: RunningHeadway) -> None:
    """The job has the whole conversation; what it goes on from must be there."""
    first = _post(running, "/responses", CALLS["/responses"]).json()
    body = {**CALLS["/responses"], "previous_response_id": first["id"]}
    answer = _post(running, "/responses", body, prefer="respond-async")
    assert answer.status_code == 202
    later = _ended(running, answer).json()
    now = _post(running, "/responses", body).json()
    assert later["usage"]["input_tokens"] == now["usage"]["input_tokens"]
    assert now["usage"]["input_tokens"] > first["usage"]["input_tokens"]
    gone = {**body, "previous_response_id": "resp_" + "0" * 24}
    assert _post(running, "/responses", gone, prefer="respond-async").status_code == 404
    streamed = _post(running, "/responses", {**body, "stream": True}, prefer="respond-async")
    assert (streamed.status_code, streamed.json()["error"]["param"]) == (400, "stream")


def test_a_background_response_is_asynchronous_already(running: RunningHeadway) -> None:
    """It is answered with the response, as without the preference."""
    body = {**CALLS["/responses"], "background": True}
    answer = _post(running, "/responses", body, prefer="respond-async")
    assert answer.status_code == 200
    assert answer.json()["object"] == "response"
    assert "preference-applied" not in answer.headers


def test_an_idempotency_key_counts(running: RunningHeadway) -> None:
    """The same call with the same key is the same job."""
    headers = {"prefer": "respond-async", "idempotency_key": "once"}
    locations = {
        _post(running, "/completions", CALLS["/completions"], **headers).headers["location"]
        for _ in range(2)
    }
    assert len(locations) == 1


def test_with_the_official_client(running: RunningHeadway) -> None:
    """A header is all it takes; the result parses as the client's own type."""
    client = openai.OpenAI(base_url=running.base_url, api_key=KEY, max_retries=0)
    raw = client.chat.completions.with_raw_response.create(
        model="m",
        messages=[{"role": "user", "content": "hello there"}],
        extra_headers={"Prefer": "respond-async"},
    )
    assert raw.status_code == 202
    path = raw.headers["location"].removeprefix("/v1")
    patient = client.with_options(max_retries=20)
    answer = patient.get(f"{path}/result", cast_to=openai.types.chat.ChatCompletion)
    assert answer.choices[0].message.content


def test_the_preference_in_a_header() -> None:
    """Any case, any place, any number of headers; it must be the whole word."""
    for value in (b"respond-async", b"wait=5, Respond-Async", b"respond-async;x=1"):
        assert prefers_async([(b"prefer", value)])
    assert prefers_async([(b"prefer", b"wait=5"), (b"prefer", b" respond-async ")])
    assert not prefers_async([(b"prefer", b"respond-async2"), (b"x", b"respond-async")])
    assert not prefers_async([])


def _known(body: Any) -> Any:
    """What both ways tell; a plain call may have members of the target's own."""
    if isinstance(body, dict):
        return {k: _known(v) for k, v in body.items() if v is not None and k not in _VARYING}
    return [_known(item) for item in body] if isinstance(body, list) else body


_VARYING = {"id", "created", "created_at", "completed_at", "service_tier"}
