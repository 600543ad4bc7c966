"""Routes, methods and ids of the whole application."""

import http.client
from urllib.parse import urlsplit

import httpx
import openai

from tests.support.gateway import KEY, MODEL, chat_body, running_gateway
from tests.support.upstream import ScriptedUpstream

AUTH = {"authorization": f"Bearer {KEY}"}


def test_every_answer_has_an_id_and_the_error_form(upstream: ScriptedUpstream) -> None:
    """404, 405, 413, 400 and 401: each has an x-request-id and all four error members."""
    targets = {"up": {"base_url": upstream.url}}
    with running_gateway(targets, max_body_bytes=2000) as gateway, httpx.Client() as client:
        chat = f"{gateway.url}/chat/completions"
        cases = [
            (client.get(f"{gateway.url}/nothing", headers=AUTH), 404),
            (client.get(chat, headers=AUTH), 405),
            (client.put(f"{gateway.url}/models", headers=AUTH), 405),
            (client.post(chat, headers=AUTH, content=b"x" * 3000), 413),
            (client.post(chat, headers=AUTH, content=iter([b"x" * 1500] * 2)), 413),
            (client.post(chat, headers=AUTH, content=b"{"), 400),
            (client.post(chat, headers=AUTH, content=b"[]"), 400),
            (client.post(chat, headers=AUTH, content=b"\xff\xfe"), 400),
            (client.post(chat), 401),
        ]
        ids = {answer.headers["x-request-id"] for answer, _ in cases}
        assert len(ids) == len(cases)
        for answer, status in cases:
            assert answer.status_code == status
            assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
            assert 0 <= int(answer.headers["openai-processing-ms"]) < 10_000
        assert cases[1][0].headers["allow"] == "POST"


def test_routes_without_prefix(upstream: ScriptedUpstream) -> None:
    """A base URL without /v1 works too."""
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        assert gateway.post("/chat/completions", chat_body()).status_code == 200
        with openai.OpenAI(base_url=gateway.root, api_key=KEY) as client:
            assert [model.id for model in client.models.list()] == [MODEL]
        assert gateway.records.last.intent.endpoint == "/v1/chat/completions"


def test_answer_headers(upstream: ScriptedUpstream) -> None:
    """Class, reason, target, served model and attempts are told."""
    with running_gateway({"up": {"base_url": upstream.url, "models": {MODEL: "x"}}}) as gateway:
        headers = gateway.chat().headers
        told = {name: headers[f"x-headway-{name}"] for name in ("class", "class-reason", "target")}
        assert told == {"class": "interactive", "class-reason": "default", "target": "up"}
        assert headers["x-headway-served-model"] == "x"
        assert headers["x-headway-attempts"] == "1"
        refused = gateway.post("/v1/chat/completions", {**chat_body(), "model": "no"})
        assert refused.headers["x-headway-class"] == "interactive"
        broken = gateway.post("/v1/chat/completions", [], x_headway_class="elastic")
        assert (broken.status_code, broken.headers["x-headway-class"]) == (400, "elastic")


async def test_async_client_on_every_endpoint(upstream: ScriptedUpstream) -> None:
    """The official asynchronous client works on all inference endpoints."""
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        async with openai.AsyncOpenAI(base_url=gateway.url, api_key=KEY) as client:
            chat = await client.chat.completions.create(**chat_body("a b c"))
            assert chat.usage is not None
            assert chat.usage.prompt_tokens == 3
            assert chat._request_id is not None
            stream = await client.chat.completions.create(**chat_body(stream=True))
            assert len([chunk async for chunk in stream]) == 18
            vectors = await client.embeddings.create(model=MODEL, input=["a", "b"])
            assert len(vectors.data[0].embedding) == 8
        assert len(gateway.settled(3)) == 3


def test_head_is_405_and_has_no_body(upstream: ScriptedUpstream) -> None:
    """An answer to HEAD carries no body, so the connection stays usable."""
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        connection = http.client.HTTPConnection(urlsplit(gateway.root).netloc, timeout=5)
        for _ in range(2):
            connection.request("HEAD", "/v1/chat/completions", headers=AUTH)
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (405, b"")
        connection.close()
