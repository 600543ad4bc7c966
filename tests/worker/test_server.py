"""The worker from outside, over the tiny float32 model."""

import asyncio
import json
import random
from typing import Any

import httpx
import pytest

from gateway.worker.options import Faults
from tests.support.worker import MODEL, complete, prompt_body, tiny_worker

PROMPTS = ["a", "be", "sea ", "deep", "eager beaver", "f" * 40, "g h i j k", "🙂 日本"]


async def test_wrk_01_batched_equals_single() -> None:
    """WRK-01: greedy texts and counts are those of each prompt alone."""
    async with tiny_worker() as (client, _):
        alone = [await complete(client, p, max_tokens=32, ignore_eos=True) for p in PROMPTS]
        calls = (complete(client, p, max_tokens=32, ignore_eos=True) for p in PROMPTS)
        together = await asyncio.gather(*calls)
    for one, other in zip(alone, together, strict=True):
        assert one["choices"][0]["text"] == other["choices"][0]["text"]
        assert one["usage"] == other["usage"]


async def test_wrk_03_a_seed_belongs_to_its_request() -> None:
    """WRK-03: neighbours change nothing in a seeded answer."""
    texts = set()
    async with tiny_worker() as (client, _):
        for neighbour in (None, {}, {"seed": 7}):
            for _ in range(5):
                calls = [complete(client, "x", seed=42, temperature=0.8, ignore_eos=True)]
                if neighbour is not None:
                    calls.append(complete(client, "yy", temperature=0.8, **neighbour))
                texts.add((await asyncio.gather(*calls))[0]["choices"][0]["text"])
    assert len(texts) == 1


async def test_wrk_09_bad_items_harm_nobody() -> None:
    """WRK-09: three bad calls answer 400, thirteen good ones are good, and so is the next."""
    bad = [
        prompt_body("z" * 600),
        prompt_body("a", temperature=-1),
        prompt_body("a", max_tokens=0),
    ]
    good = [prompt_body(f"good {n}") for n in range(13)]
    async with tiny_worker() as (client, _):
        answers = await asyncio.gather(
            *(client.post("/v1/completions", json=body) for body in [*bad, *good])
        )
        assert [a.status_code for a in answers] == [400] * 3 + [200] * 13
        for answer in answers[:3]:
            assert answer.json()["error"]["message"]
            assert answer.json()["error"]["param"]
        await complete(client, "next")


async def test_wrk_11_reason_and_counts_are_exact() -> None:
    """WRK-11: length after exactly five tokens; stop without padding or text after the end."""
    async with tiny_worker() as (client, _):
        free = await complete(client, "count", max_tokens=5, ignore_eos=True)
        assert free["choices"][0]["finish_reason"] == "length"
        assert free["usage"]["completion_tokens"] == 5
        forced = await complete(client, "count", max_tokens=5, logit_bias={"256": 100})
        assert forced["choices"][0]["finish_reason"] == "stop"
        assert forced["choices"][0]["text"] == ""
        assert forced["usage"]["completion_tokens"] == 1


async def test_wrk_12_the_shortest_answers() -> None:
    """WRK-12: one token, and an end as the very first token; the slot is free at once."""
    async with tiny_worker() as (client, engine):
        one = await complete(client, "a", max_tokens=1, ignore_eos=True)
        assert (one["choices"][0]["finish_reason"], one["usage"]["completion_tokens"]) == (
            "length",
            1,
        )
        none = await complete(client, "a", max_tokens=9, logit_bias={"256": 100})
        assert none["choices"][0]["finish_reason"] == "stop"
        assert engine.active == 0


async def test_wrk_13_out_of_memory_shrinks_the_batch() -> None:
    """WRK-13: the small ones are done in smaller batches, the one that never fits fails alone."""
    faults = Faults(oom_rows=8, oom_tokens=400)
    async with tiny_worker(faults=faults) as (client, _), asyncio.timeout(60):
        bodies = [prompt_body(f"item {n}", max_tokens=4) for n in range(15)]
        bodies.append(prompt_body("L" * 450, max_tokens=4))
        calls = (client.post("/v1/completions", json=body) for body in bodies)
        answers = await asyncio.gather(*calls)
    assert [a.status_code for a in answers[:15]] == [200] * 15
    assert answers[15].json()["error"]["code"] == "out_of_memory"


async def test_wrk_14_not_a_number_fails_its_row_only() -> None:
    """WRK-14: seven good, one failed with numerical_error, never an empty success."""
    async with tiny_worker(faults=Faults(nan_prompt="poison")) as (client, _):
        bodies = [prompt_body(f"item {n}") for n in range(7)] + [prompt_body("poison")]
        calls = (client.post("/v1/completions", json=body) for body in bodies)
        answers = await asyncio.gather(*calls)
    assert [a.status_code for a in answers] == [200] * 7 + [500]
    assert answers[7].json()["error"]["code"] == "numerical_error"


async def test_wrk_14_one_row_by_its_number() -> None:
    """WRK-14: the row that is named fails, streamed too, with a status of its own."""
    async with tiny_worker(faults=Faults(nan_row=2)) as (client, _):
        await complete(client, "first")
        failed = await client.post("/v1/completions", json=prompt_body("second", stream=True))
        await complete(client, "third")
    assert (failed.status_code, failed.json()["error"]["code"]) == (500, "numerical_error")


async def test_wrk_16_clients_that_leave_free_their_rows() -> None:
    """WRK-16: eighty of a hundred calls are dropped at random; twenty more run as ever."""
    chance = random.Random(3)
    async with tiny_worker() as (client, engine):
        calls = [
            asyncio.create_task(complete(client, f"p{n}", max_tokens=40, ignore_eos=True))
            for n in range(100)
        ]
        for call in calls[:80]:
            await asyncio.sleep(chance.random() / 200)
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        async with asyncio.timeout(30):
            await asyncio.gather(*(complete(client, f"q{n}") for n in range(20)))
            await complete(client, "last")
        assert (engine.active, engine.waiting) == (0, 0)


async def _stream(client: httpx.AsyncClient, body: dict[str, object]) -> list[dict[str, Any]]:
    async with client.stream("POST", "/v1/completions", json={**body, "stream": True}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line async for line in answer.aiter_lines()]
    assert lines[-2:] == ["data: [DONE]", ""]
    return [json.loads(line[6:]) for line in lines if line and line != "data: [DONE]"]


@pytest.mark.parametrize("seed", range(5))
async def test_wrk_07_and_18_streamed_text_is_the_whole_text(seed: int) -> None:
    """WRK-07, WRK-18: joined deltas equal the plain answer, whatever bytes the tokens cut."""
    body = prompt_body("utf", temperature=1, seed=seed, max_tokens=60, ignore_eos=True)
    async with tiny_worker() as (client, _):
        plain = (await client.post("/v1/completions", json=body)).json()
        events = await _stream(client, body)
    text = "".join(e["choices"][0]["text"] for e in events if e["choices"])
    assert text == plain["choices"][0]["text"]


async def test_usage_comes_last_when_asked_for() -> None:
    """The closing chunk has no choices and the same usage as the plain answer."""
    body = prompt_body("u", stream_options={"include_usage": True})
    async with tiny_worker() as (client, _):
        events = await _stream(client, body)
    assert events[-1]["choices"] == []
    assert events[-1]["usage"]["prompt_tokens"] == 1


async def test_a_chat_answers_in_the_chat_form() -> None:
    """Role, content, reason and usage are where clients look for them."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}
    async with tiny_worker() as (client, _):
        answer = (await client.post("/v1/chat/completions", json={**body, "n": 2})).json()
    assert answer["object"] == "chat.completion"
    assert [choice["index"] for choice in answer["choices"]] == [0, 1]
    assert answer["choices"][0]["message"]["role"] == "assistant"


async def test_models_health_and_unknown_paths() -> None:
    """The model is listed, health is plain, an unknown path is a JSON error."""
    async with tiny_worker() as (client, _):
        assert (await client.get("/v1/models")).json()["data"][0]["id"] == MODEL
        assert (await client.get("/health")).status_code == 200
        missing = await client.get("/v1/nothing")
    assert (missing.status_code, missing.json()["error"]["param"]) == (404, None)
