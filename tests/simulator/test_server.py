"""The simulated engine from outside."""

import asyncio

import httpx
from openai import AsyncOpenAI

from tests.support.batch_plane import eventually
from tests.support.simulated import MODEL, PROFILE, chat_body, engine_app, engine_process


async def test_whole_answers_have_exact_counts() -> None:
    """Chat and completions."""
    async with engine_app() as (client, _):
        chat = (await client.post("/v1/chat/completions", json=chat_body())).json()
        body = {"model": MODEL, "prompt": "x" * 80, "max_tokens": 3}
        text = (await client.post("/v1/completions", json=body)).json()
    assert (chat["usage"]["prompt_tokens"], chat["usage"]["completion_tokens"]) == (10, 5)
    assert (text["usage"]["prompt_tokens"], text["usage"]["completion_tokens"]) == (20, 3)
    assert text["choices"][0]["text"] == " the model keeps"


async def test_errors_have_the_status_and_the_shape_clients_know() -> None:
    """400 for a bad call, 404 for another model."""
    async with engine_app() as (client, _):
        bad = await client.post("/v1/chat/completions", json=chat_body(max_tokens=0))
        other = await client.post("/v1/chat/completions", json=chat_body(model="other"))
        long = await client.post("/v1/chat/completions", json=chat_body(size=20_000))
    assert [answer.status_code for answer in (bad, other, long)] == [400, 404, 400]
    assert long.json()["error"]["code"] == "context_length_exceeded"


async def test_health_models_and_metrics() -> None:
    """What a gateway asks before and while it calls."""
    async with engine_app() as (client, _):
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/v1/models")).json()["data"][0]["id"] == MODEL
        assert "vllm:num_requests_waiting" in (await client.get("/metrics")).text
        await client.post("/control", json={"metrics": False})
        assert (await client.get("/metrics")).status_code == 404
        assert (await client.get("/control")).json()["metrics"] is False


async def test_a_cache_that_shrank_below_a_sequence_fails_it() -> None:
    """It is an error of the server, and the next call is served."""
    async with engine_app(profile=PROFILE.faster(0.2)) as (client, clockwork):
        call = client.post("/v1/chat/completions", json=chat_body(2000, max_tokens=400))
        running = asyncio.create_task(call)
        async with asyncio.timeout(5):
            while not clockwork.engine.running:  # noqa: ASYNC110 - no event there
                await asyncio.sleep(0.005)
        await client.post("/control", json={"kv_tokens": 300})
        assert (await running).status_code == 500
        assert (await client.post("/v1/chat/completions", json=chat_body())).status_code == 200


async def test_streams_and_clients_that_leave() -> None:
    """The official client reads streams; who closes one frees its place at once."""
    async with (
        engine_process("--profile", "a100-8b", "--model", MODEL, "--scale", "5") as (url, _),
        AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client,
        httpx.AsyncClient() as http,
    ):
        body = chat_body(max_tokens=20)
        stream = await client.chat.completions.create(
            **body, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        assert sum(bool(c.choices and c.choices[0].delta.content) for c in chunks) == 20
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.completion_tokens == 20
        endless = await client.chat.completions.create(**chat_body(max_tokens=30_000), stream=True)
        await anext(aiter(endless))
        assert (await http.get(f"{url}/control")).json()["running"] == 1
        await endless.close()

        async def gone() -> bool:
            return not (await http.get(f"{url}/control")).json()["running"]

        await eventually(gone)
