"""Browsers: off by default, by listed origin, preflight."""

from typing import Any

import httpx
import pytest

from tests.support.gateway import KEY, RunningGateway, chat_body, running_gateway
from tests.support.scripts import Sse, chat_chunk
from tests.support.upstream import ScriptedUpstream

PAGE, OTHER = "https://app.example", "https://evil.example"
AUTH = {"authorization": f"Bearer {KEY}"}


def _preflight(gateway: RunningGateway, origin: str) -> httpx.Response:
    asked = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, x-stainless-os",
    }
    return httpx.options(f"{gateway.url}/chat/completions", headers=asked)


def _permissions(answer: httpx.Response) -> dict[str, str]:
    return {k: v for k, v in answer.headers.items() if k.startswith("access-control")}


def test_off_by_default(upstream: ScriptedUpstream) -> None:
    """No word of permission, and a preflight is a call without a key."""
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        asked = _preflight(gateway, PAGE)
        told = gateway.post("/v1/chat/completions", chat_body(), origin=PAGE)
    assert (asked.status_code, _permissions(asked)) == (401, {})
    assert (told.status_code, _permissions(told)) == (200, {})


def test_a_listed_origin(upstream: ScriptedUpstream) -> None:
    """Preflight without a key; answers, streams and errors may be read."""
    policy: Any = {"cors": {"origins": [PAGE]}}
    with running_gateway({"up": {"base_url": upstream.url}}, **policy) as gateway:
        asked = _preflight(gateway, PAGE)
        upstream.enqueue(Sse([chat_chunk("a", finish="stop")]))
        stream = gateway.post("/v1/chat/completions", chat_body(stream=True), origin=PAGE)
        wrong = gateway.post("/v1/chat/completions", {}, origin=PAGE, authorization="Bearer x")
        own = gateway.post("/v1/chat/completions", chat_body())
    assert (asked.status_code, asked.content) == (204, b"")
    assert asked.headers["access-control-allow-headers"] == "authorization, x-stainless-os"
    assert "POST" in asked.headers["access-control-allow-methods"]
    assert asked.headers["x-request-id"]
    for answer, status in ((stream, 200), (wrong, 401)):
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert answer.headers["vary"] == "Origin"
        assert "x-request-id" in answer.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in answer.headers
    assert _permissions(own) == {}


def test_another_origin(upstream: ScriptedUpstream) -> None:
    """It is told nothing: the browser keeps the answer from the page."""
    policy: Any = {"cors": {"origins": [PAGE]}}
    with running_gateway({"up": {"base_url": upstream.url}}, **policy) as gateway:
        asked = _preflight(gateway, OTHER)
        told = gateway.post("/v1/chat/completions", chat_body(), origin=OTHER)
    assert (asked.status_code, _permissions(asked)) == (401, {})
    assert _permissions(told) == {}


@pytest.mark.parametrize("origin", [PAGE, OTHER, "null"])
def test_any_origin(upstream: ScriptedUpstream, origin: str) -> None:
    """``*`` is every page; an OPTIONS that is no preflight is a call like any other."""
    policy: Any = {"cors": {"origins": ["*"]}}
    with running_gateway({"up": {"base_url": upstream.url}}, **policy) as gateway:
        assert _preflight(gateway, origin).headers["access-control-allow-origin"] == "*"
        bare = httpx.options(f"{gateway.url}/models", headers={**AUTH, "origin": origin})
    assert bare.status_code == 405
