"""The gateway before a real vLLM: what a client sees is what vLLM says. Run by ``make interop``."""

import json
import time
from collections import Counter
from typing import Any

import openai
import pytest

from tests.interop.conftest import Engine
from tests.support.batch import BatchClient, chat_line
from tests.support.serve import RunningHeadway, headway_command, wait_for

pytestmark = pytest.mark.timeout(600)

QUESTION: list[Any] = [{"role": "user", "content": "What is the capital of France?"}]
GREEDY: dict[str, Any] = {"messages": QUESTION, "max_tokens": 12, "temperature": 0}
CITY = {"type": "string", "maxLength": 12}
SCHEMA = {
    "type": "object",
    "properties": {"city": CITY},
    "required": ["city"],
    "additionalProperties": False,
}


def test_chat_and_stream(client: Any, engine: Engine) -> None:
    """The same text and usage as from vLLM itself, plain and streamed."""
    direct = engine.direct.chat.completions.create(model=engine.model, **GREEDY)
    plain = client.chat.completions.create(model="m", **GREEDY)
    options = {"include_usage": True}
    stream = client.chat.completions.create(
        model="m", stream=True, stream_options=options, **GREEDY
    )
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert plain.choices[0].message.content == direct.choices[0].message.content == text
    assert plain.usage.total_tokens == direct.usage.total_tokens
    assert chunks[-1].usage.total_tokens == direct.usage.total_tokens


def test_logprobs(client: Any, engine: Engine) -> None:
    """Chat with alternatives, completions from token ids with ``echo``: as vLLM gives them."""
    asked = {**GREEDY, "logprobs": True, "top_logprobs": 3}
    plain = client.chat.completions.create(model="m", **asked).choices[0].logprobs
    direct = engine.direct.chat.completions.create(model=engine.model, **asked).choices[0].logprobs
    assert plain.content
    assert direct.content
    assert [t.token for t in plain.content] == [t.token for t in direct.content]
    assert [len(t.top_logprobs) for t in plain.content] == [3] * len(plain.content)
    old: dict[str, Any] = {"prompt": [1, 2, 3], "max_tokens": 2, "logprobs": 2, "temperature": 0}
    told = client.completions.create(model="m", echo=True, **old).choices[0].logprobs
    assert len(told.tokens) == 5


def test_several_prompts_and_choices(client: Any) -> None:
    """An array of prompts, and ``n``; the indexes are vLLM's."""
    prompts = client.completions.create(model="m", prompt=["One", "Two"], max_tokens=3)
    assert [choice.index for choice in prompts.choices] == [0, 1]
    several = client.chat.completions.create(model="m", n=2, messages=QUESTION, max_tokens=3)
    assert len(several.choices) == 2


def test_vllms_own_members(client: Any) -> None:
    """``ignore_eos`` and ``top_k`` reach it: the answer is as long as asked for, the likeliest."""
    own = {"top_k": 1, "ignore_eos": True}
    asked = {**GREEDY, "max_tokens": 24, "temperature": 1.0}
    answer = client.chat.completions.create(model="m", extra_body=own, **asked)
    again = client.chat.completions.create(model="m", extra_body=own, **asked)
    assert answer.usage.completion_tokens == 24
    assert answer.choices[0].message.content == again.choices[0].message.content


def test_a_schema_is_kept_to(client: Any) -> None:
    """``json_schema`` reaches the engine's grammar."""
    form = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}
    asked: dict[str, Any] = {**GREEDY, "max_tokens": 60}
    text = client.chat.completions.create(model="m", response_format=form, **asked)
    assert set(json.loads(text.choices[0].message.content or "")) == {"city"}


def test_tools(client: Any, engine: Engine) -> None:
    """A forced call has the engine's name and arguments, plain and streamed."""
    tools = {
        "tools": [{"type": "function", "function": {"name": "go_to", "parameters": SCHEMA}}],
        "tool_choice": {"type": "function", "function": {"name": "go_to"}},
    }
    asked: dict[str, Any] = {**GREEDY, **tools, "max_tokens": 60}
    try:
        (direct,) = called(engine.direct, engine.model, asked)
    except openai.BadRequestError as error:
        pytest.skip(f"this vLLM was started without tools: {error}")
    assert called(client, "m", asked) == [direct]
    assert direct[0] == "go_to"
    assert streamed(client, "m", asked) == streamed(engine.direct, engine.model, asked)


def called(client: Any, model: str, asked: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and arguments of each call in a plain answer."""
    answer = client.chat.completions.create(model=model, **asked)
    calls = answer.choices[0].message.tool_calls or []
    return [(call.function.name, call.function.arguments) for call in calls]


def streamed(client: Any, model: str, asked: dict[str, Any]) -> str:
    """Name and arguments of the calls in a streamed answer, joined."""
    stream = client.chat.completions.create(model=model, stream=True, **asked)
    deltas = [chunk.choices[0].delta for chunk in stream if chunk.choices]
    parts = [call.function for delta in deltas for call in delta.tool_calls or []]
    return "".join((part.name or "") + (part.arguments or "") for part in parts if part)


def test_errors(client: Any) -> None:
    """A prompt that is too long and a bad value: the client's classes, OpenAI's codes."""
    with pytest.raises(openai.BadRequestError) as long:
        client.completions.create(model="m", prompt="word " * 40_000, max_tokens=1)
    assert long.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError):
        client.completions.create(
            model="m", prompt="x", max_tokens=1, temperature=-0.0, logprobs=-7
        )


def test_leaving(client: Any, engine: Engine) -> None:
    """The engine stops working for a client that has gone."""
    body = {"ignore_eos": True}
    stream = client.chat.completions.create(
        model="m", messages=QUESTION, max_tokens=1500, stream=True, extra_body=body
    )
    next(iter(stream))
    assert engine.running() == 1
    stream.close()
    left = time.monotonic()
    wait_for(lambda: engine.running() == 0, 5, "the end of the call")
    assert time.monotonic() - left < 3


def test_a_batch_of_twenty(running: RunningHeadway, engine: Engine) -> None:
    """Every row is answered once, and the bill is vLLM's count."""
    batches = BatchClient(running)
    rows = [chat_line(f"row-{n}", f"Say {n}", temperature=0) for n in range(20)]
    batch = batches.start(rows)
    wait_for(lambda: batches.get(batch["id"])["status"] == "completed", 300, "the batch")
    done = batches.get(batch["id"])
    assert done["request_counts"] == {"total": 20, "completed": 20, "failed": 0}
    with running.client() as http:
        text = http.get(f"/files/{done['output_file_id']}/content").text
    lines = [json.loads(line) for line in text.splitlines()]
    assert {line["custom_id"] for line in lines} == {f"row-{n}" for n in range(20)}
    usages = [line["response"]["body"]["usage"] for line in lines]
    assert done["usage"]["total_tokens"] == sum(usage["total_tokens"] for usage in usages)
    direct = engine.direct.chat.completions.create(
        model=engine.model,
        messages=[{"role": "user", "content": "Say 7"}],
        max_tokens=4,
        temperature=0,
    )
    (seventh,) = [line for line in lines if line["custom_id"] == "row-7"]
    prompt = seventh["response"]["body"]["usage"]["prompt_tokens"]
    assert prompt == direct.usage.prompt_tokens


def test_responses(client: Any) -> None:
    """Translated to chat completions, streamed too."""
    asked: dict[str, Any] = {"model": "m", "input": "What is the capital of France?"}
    plain = client.responses.create(**asked, max_output_tokens=16, temperature=0)
    events = list(
        client.responses.create(**asked, max_output_tokens=16, temperature=0, stream=True)
    )
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert plain.output_text == "".join(deltas)
    assert plain.usage.output_tokens > 0


def test_the_ledger_has_it_all(running: RunningHeadway) -> None:
    """Interactive calls and batch rows are on record; only the call that was left is estimated."""
    command = ["usage", "--records", "--data-dir", str(running.data_dir)]
    ended = headway_command(command, {"HEADWAY_API_KEY": running.key})
    assert ended.returncode == 0, ended.stderr
    records = [json.loads(line) for line in ended.stdout.splitlines()]
    lanes = Counter(record["lane"] for record in records)
    assert lanes["batch"] == 20
    assert lanes["interactive"] >= 10
    estimated = [r for r in records if r["estimated"]]
    assert len(estimated) <= 1, estimated
