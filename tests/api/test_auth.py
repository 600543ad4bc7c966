"""Keys and what may not pass: the security cases of the interactive plane."""

import http.client
import logging
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.gateway import KEY, MODEL, chat_body, running_gateway
from tests.support.scripts import error
from tests.support.upstream import ScriptedUpstream

PATHS = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/models",
    f"/v1/models/{MODEL}",
    "/chat/completions",
    "/models",
    "/nowhere",
]
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]


def test_sec_01_key_in_the_address(
    upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    """SEC-01: a secret in a target's address shows up nowhere, whatever goes wrong."""
    caplog.set_level(logging.DEBUG)
    url = f"{upstream.url}?key=SECRET1"
    upstream.enqueue(error(404, f"no such thing at {url}"))
    with running_gateway({"up": {"base_url": url, "retry": {"attempts": 1}}}) as gateway:
        first = gateway.chat()
        assert first.status_code == 404
        assert upstream.calls()[0].path == "/v1/chat/completions?key=SECRET1"
        upstream.refuse()
        second = gateway.chat()
        assert second.status_code == 503
        for answer in (first, second):
            shown = answer.text + str(answer.headers)
            assert "SECRET1" not in shown
            assert str(upstream.port) not in shown.replace(str(urlsplit(gateway.root).port), "")
    ours = [r for r in caplog.records if not r.name.startswith(("httpx", "httpcore"))]
    assert not [record for record in ours if "SECRET1" in record.getMessage()]


def test_sec_02_unknown_model(upstream: ScriptedUpstream) -> None:
    """SEC-02: an unknown model is a 404 that tells no name, address or key."""
    targets = {
        "up": {"base_url": upstream.url, "api_key": "sk-one", "models": ["private"]},
    }
    with running_gateway(targets) as gateway:
        got = gateway.post("/v1/chat/completions", {**chat_body(), "model": "nope"})
        assert got.status_code == 404
        assert got.json()["error"]["code"] == "model_not_found"
        assert not any(word in got.text for word in ("private", "sk-one", "127.0.0.1", "up1"))


def test_sec_03_wrong_key(upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture) -> None:
    """SEC-03: a wrong key is 401 and not repeated."""
    key = "sk-other-service-12345678"
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        got = gateway.post("/v1/chat/completions", chat_body(), authorization=f"Bearer {key}")
        assert got.status_code == 401
        assert got.json()["error"]["code"] == "invalid_api_key"
        assert key[:-4] not in got.text + caplog.text


@pytest.mark.parametrize("place", ["top", "extra_body", "metadata"])
def test_sec_05_caller_names_the_target(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream, place: str
) -> None:
    """SEC-05: members that name a target are dropped, wherever they stand."""
    evil: dict[str, Any] = {
        "api_base": upstream2.url,
        "base_url": upstream2.url,
        "api_key": "sk-evil",
        "custom_llm_provider": "evil",
        "extra_headers": "x-evil: 1",
    }
    with running_gateway({"up": {"base_url": upstream.url, "api_key": "sk-provider"}}) as gateway:
        got = gateway.chat(**(evil if place == "top" else {place: evil}))
        assert got.status_code == 200
        assert upstream2.connections == 0
        sent = upstream.calls()[0]
        inside = sent.json if place == "top" else sent.json[place]
        assert evil.keys().isdisjoint(inside)
        assert sent.headers["authorization"] == "Bearer sk-provider"


def test_sec_07_header_hygiene(upstream: ScriptedUpstream) -> None:
    """SEC-07: of the client's headers none reaches the target; the provider key does."""
    with running_gateway({"up": {"base_url": upstream.url, "api_key": "sk-provider"}}) as gateway:
        got = gateway.post(
            "/v1/chat/completions",
            chat_body(),
            proxy_authorization="Basic LEAK",
            cookie="LEAK=1",
            x_api_key="LEAK",
            x_forwarded_host="LEAK",
            connection="keep-alive, X-Secret",
            x_secret="LEAK",
        )
        assert got.status_code == 200
        headers = upstream.calls()[0].headers
        assert "LEAK" not in str(headers)
        assert KEY not in str(headers)
        assert headers["authorization"] == "Bearer sk-provider"
        assert headers["accept-encoding"] == "identity"


def test_sec_08_length_and_framing(upstream: ScriptedUpstream) -> None:
    """SEC-08: a changed body has its right length; two framings at once are refused."""
    with running_gateway({"up": {"base_url": upstream.url, "models": {MODEL: "other"}}}) as gateway:
        assert gateway.chat(stream=True).status_code == 200
        sent = upstream.calls()[0]
        assert int(sent.headers["content-length"]) == len(sent.body)
        assert sent.model == "other"
        connection = http.client.HTTPConnection(urlsplit(gateway.root).netloc, timeout=5)
        connection.putrequest("POST", "/v1/chat/completions")
        connection.putheader("authorization", f"Bearer {KEY}")
        connection.putheader("content-length", "5")
        connection.putheader("transfer-encoding", "chunked")
        connection.endheaders(b"0\r\n\r\n")
        assert connection.getresponse().status == 400
        connection.close()
        assert len(upstream.calls()) == 1


@pytest.mark.parametrize("method", METHODS)
def test_sec_09_default_deny(upstream: ScriptedUpstream, method: str) -> None:
    """SEC-09: without a key every route and method is 401 with an error body and an id."""
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway, httpx.Client() as client:
        for path in PATHS:
            for headers in ({}, {"authorization": "Basic eDp5"}, {"authorization": "Bearer"}):
                got = client.request(method, gateway.root + path, headers=headers)
                assert got.status_code == 401
                assert got.headers["x-request-id"].startswith("req_")
                assert method == "HEAD" or got.json()["error"]["code"] is None
        assert not upstream.requests


def test_health_needs_no_key(upstream: ScriptedUpstream) -> None:
    """Health checks are the only open routes."""
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        assert httpx.get(f"{gateway.root}/livez").status_code == 200
        assert httpx.get(f"{gateway.root}/readyz").status_code == 200
