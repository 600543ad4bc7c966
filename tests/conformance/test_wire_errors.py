"""What a client sees of a target's error: our envelope, our statuses, none of its secrets."""

import json
from typing import Any

import openai
import pytest

from tests.support.contract import checked
from tests.support.gateway import chat_body
from tests.support.interactive import Wire, wire
from tests.support.scripts import Sse, answer, chat_chunk, raw
from tests.support.upstream import ScriptedUpstream

KEY = "sk-of-the-provider-0123"
ONCE = {"retry": {"attempts": 1}, "api_key": KEY}
PATHS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}]},
    "/v1/completions": {"prompt": "x"},
    "/v1/embeddings": {"input": "x"},
}


def _secret(upstream: ScriptedUpstream) -> str:
    return f"at {upstream.url} (127.0.0.1:{upstream.port}) with Bearer {KEY}"


def _safe(there: Wire, text: str) -> None:
    for secret in (KEY, str(there.upstream.port), "127.0.0.1", "<html"):
        assert secret not in text


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("told", "status"),
    [
        *((401, 502), (402, 502), (403, 502), (529, 503)),
        *((same, same) for same in (400, 404, 413, 422, 429, 500, 502, 503, 504)),
    ],
)
def test_statuses(upstream: ScriptedUpstream, path: str, told: int, status: int) -> None:
    """A refused credential of ours is our 502; what is true for the caller stays as it is."""
    body = {"error": {"message": _secret(upstream), "type": "t", "param": None, "code": told}}
    upstream.enqueue(answer(body, told))
    with wire(upstream, **ONCE) as there:
        got = there.refused(path, **PATHS[path])
        _safe(there, got.text + str(got.headers))
    assert got.status_code == status
    assert ("retry-after" in got.headers) == (status in {429, 503})


@pytest.mark.parametrize(
    "body",
    [
        {"error": "a text"},
        {"error": {"message": ["odd"], "type": 3, "code": 42, "param": {"a": 1}}},
        {"detail": "FastAPI's"},
        {"object": "error", "message": "old vLLM's", "code": 40301, "type": "x", "param": None},
        [{"error": {"code": 400, "message": "Gemini's", "status": "INVALID_ARGUMENT"}}],
        {"message": "bare"},
        [],
        "text",
        None,
    ],
)
def test_every_shape_of_error(upstream: ScriptedUpstream, body: Any) -> None:
    """Numeric codes, lists and texts become the envelope with texts or nulls in it."""
    upstream.enqueue(answer(body, 400))
    with wire(upstream, **ONCE) as there:
        assert there.refused("/v1/completions", prompt="x").status_code == 400


@pytest.mark.parametrize("status", [200, 400, 500, 502])
def test_pages(upstream: ScriptedUpstream, status: int) -> None:
    """HTML of a proxy in between is never passed on, with any status."""
    page = f"<html><body>nginx {_secret(upstream)}</body></html>".encode()
    upstream.enqueue(raw(page, status, headers={"content-type": "text/html"}))
    with wire(upstream, **ONCE) as there:
        got = there.refused("/v1/completions", prompt="x")
        _safe(there, got.text)
    assert got.status_code == (502 if status == 200 else status)


def test_an_error_in_a_stream(upstream: ScriptedUpstream) -> None:
    """One event without secrets, and no ``[DONE]``; the client raises."""
    error = {"error": {"message": _secret(upstream), "code": 500}}
    script = Sse([chat_chunk("a"), error])
    upstream.enqueue(script, script)
    with wire(upstream, **ONCE) as there:
        text = there.gateway.post("/v1/chat/completions", chat_body(stream=True)).text
        _safe(there, text)
        with pytest.raises(openai.APIError):
            list(
                there.client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "x"}], stream=True
                )
            )
    events = text.removesuffix("\n\n").split("\n\n")
    assert len([event for event in events if '"error"' in event]) == 1
    assert "[DONE]" not in text
    checked(json.loads(events[-1].removeprefix("data: ")), "error")
