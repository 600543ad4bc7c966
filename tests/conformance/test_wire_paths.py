"""Paths and models: with and without ``/v1``, doubled slashes, ids with slashes, no redirects."""

import httpx
import openai
import pytest

from tests.support.contract import checked
from tests.support.gateway import KEY, chat_body
from tests.support.interactive import wire
from tests.support.upstream import ScriptedUpstream

AUTH = {"authorization": f"Bearer {KEY}"}
SLASHED = "org/sub/model-7b"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/chat/completions",
        "//v1/chat/completions",
        "/v1//chat/completions",
        "/v1//chat///completions",
        "//chat/completions",
    ],
)
def test_chat_at_every_spelling(upstream: ScriptedUpstream, path: str) -> None:
    """Base URLs with and without ``/v1`` and a slash at their end."""
    with wire(upstream) as there:
        got = there.gateway.post(path, chat_body())
        assert there.gateway.records.last.intent.endpoint == "/v1/chat/completions"
    checked(got.json(), "chat_completion")


@pytest.mark.parametrize("path", ["/v1/models", "/models", "//v1//models"])
def test_models_at_every_spelling(upstream: ScriptedUpstream, path: str) -> None:
    """The other routes, too."""
    with wire(upstream) as there:
        got = httpx.get(f"{there.gateway.root}{path}", headers=AUTH)
    assert [m["id"] for m in checked(got.json(), "model_list")["data"]] == ["m"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/chat/completions/", 404),
        ("POST", "/v1/models/", 405),
        ("GET", "/v1", 404),
        ("GET", "/", 404),
        ("POST", "/v2/chat/completions", 404),
        ("DELETE", "/v1//models", 405),
    ],
)
def test_no_redirects(upstream: ScriptedUpstream, method: str, path: str, status: int) -> None:
    """An unknown path is a 404 with an error object: a redirect would lose the body."""
    with wire(upstream) as there:
        got = httpx.request(method, f"{there.gateway.root}{path}", headers=AUTH)
    assert got.status_code == status
    checked(got.json(), "error")


def test_models_whose_ids_have_slashes(upstream: ScriptedUpstream) -> None:
    """Plain and as %2F, with and without ``/v1``; they are called by their id."""
    with wire(upstream, models={SLASHED: "their"}) as there:
        for path in (
            f"/v1/models/{SLASHED}",
            f"/models/{SLASHED}",
            "/v1/models/org%2Fsub%2Fmodel-7b",
        ):
            got = httpx.get(f"{there.gateway.root}{path}", headers=AUTH)
            assert checked(got.json(), "model")["id"] == SLASHED
        assert there.client.models.retrieve(SLASHED).id == SLASHED
        there.client.embeddings.create(model=SLASHED, input="a")
        assert there.sent()["model"] == "their"
        with pytest.raises(openai.NotFoundError) as caught:
            there.client.models.retrieve("org/sub")
    assert caught.value.code == "model_not_found"
