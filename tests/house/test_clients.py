"""Unmodified clients work by base URL and key alone."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, AuthenticationError, NotFoundError, OpenAI

from tests.support.answers import Pace
from tests.support.node import node_modules
from tests.support.scripts import Sse, chat_chunk
from tests.support.serve import KEY, RunningHeadway, headway, one_target
from tests.support.upstream import ScriptedUpstream

NODE = """
import OpenAI from "openai";
const client = new OpenAI({ baseURL: process.argv[2], apiKey: process.argv[3], maxRetries: 0 });
const messages = [{ role: "user", content: "one two three" }];
const plain = await client.chat.completions.create({ model: "m", messages, max_tokens: 4 });
let streamed = "";
const stream = await client.chat.completions.create({
  model: "m", messages, max_tokens: 4, stream: true, stream_options: { include_usage: true },
});
let usage;
for await (const chunk of stream) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}
const models = await client.models.list();
console.log(JSON.stringify({
  same: plain.choices[0].message.content === streamed,
  usage: usage.total_tokens, models: models.data.map((model) => model.id),
}));
"""

BEATS = """
import OpenAI from "openai";
const client = new OpenAI({ baseURL: process.argv[2], apiKey: process.argv[3], maxRetries: 0 });
const messages = [{ role: "user", content: "beats" }];
const texts = [];
for await (const chunk of await client.chat.completions.create({
  model: "m", messages, stream: true,
})) {
  if (chunk.choices[0].delta.content) texts.push(chunk.choices[0].delta.content);
}
console.log(JSON.stringify(texts));
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedUpstream]:
    """The upstream of all tests here."""
    upstream = ScriptedUpstream(models=["m"], pace=Pace(first=0.05)).start()
    yield upstream
    upstream.stop()


@pytest.fixture(scope="module")
def running(
    server: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningHeadway]:
    """One gateway for all tests here."""
    with headway(tmp_path_factory.mktemp("clients"), one_target(server.url)) as process:
        yield process


def test_python_sync(running: RunningHeadway) -> None:
    """Chat, completions, models; plain and streamed answers say the same."""
    with OpenAI(base_url=running.base_url, api_key=KEY, max_retries=0) as client:
        chat = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "one two three"}], max_tokens=4
        )
        stream = client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "one two three"}],
            max_tokens=4,
            stream=True,
        )
        text = "".join(c.choices[0].delta.content or "" for c in stream if c.choices)
        several = client.completions.create(model="m", prompt=["a", "b"], max_tokens=2)
        models = [model.id for model in client.models.list()]
    assert chat.choices[0].message.content == text
    assert chat.usage is not None
    assert (chat.usage.prompt_tokens, chat.usage.completion_tokens) == (3, 4)
    assert [choice.index for choice in several.choices] == [0, 1]
    assert models == ["m"]


async def test_python_async(running: RunningHeadway) -> None:
    """64 calls at once through one asynchronous client."""
    async with AsyncOpenAI(base_url=running.base_url, api_key=KEY, max_retries=0) as client:
        answers = await asyncio.gather(
            *(
                client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": f"Say {n}"}], max_tokens=2
                )
                for n in range(64)
            )
        )
    assert len({answer.choices[0].message.content for answer in answers}) == 64


def test_errors_are_the_clients_own_classes(running: RunningHeadway) -> None:
    """A wrong key and an unknown model raise what the client documents."""
    messages = [{"role": "user", "content": "x"}]
    with OpenAI(base_url=running.base_url, api_key="wrong", max_retries=0) as client:
        with pytest.raises(AuthenticationError) as caught:
            client.models.list()
        assert caught.value.code == "invalid_api_key"
        with pytest.raises(NotFoundError) as missing:
            client.with_options(api_key=KEY).chat.completions.create(
                model="unknown",
                messages=messages,  # type: ignore[arg-type]
            )
        assert missing.value.code == "model_not_found"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_node(running: RunningHeadway, tmp_path: Path) -> None:
    """The official npm package: plain, streamed with usage, models."""
    assert _by_node(tmp_path, NODE, running) == '{"same":true,"usage":7,"models":["m"]}'


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_str_04_heartbeats_for_npm(
    running: RunningHeadway, server: ScriptedUpstream, tmp_path: Path
) -> None:
    """STR-04: comments before the first chunk are nothing to the official npm package."""
    beats: list[Any] = [b": WORKING\n"] * 6 + [b":\n\n"]
    events = [*beats, *map(chat_chunk, "abc"), chat_chunk(finish="stop")]
    server.on("beats", Sse(events, pause=0.1), times=1)
    assert _by_node(tmp_path, BEATS, running) == '["a","b","c"]'


def _by_node(folder: Path, script: str, running: RunningHeadway) -> str:
    """What a script that uses the package prints."""
    (folder / "node_modules").symlink_to(node_modules())
    (folder / "client.mjs").write_text(script)
    command = ["node", "client.mjs", running.base_url, KEY]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
