"""Unmodified clients work by base URL and key alone."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from openai import AsyncOpenAI, AuthenticationError, NotFoundError, OpenAI

from tests.support.answers import Pace
from tests.support.node import node_modules
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
    (tmp_path / "node_modules").symlink_to(node_modules())
    (tmp_path / "client.mjs").write_text(NODE)
    command = ["node", "client.mjs", running.base_url, KEY]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == '{"same":true,"usage":7,"models":["m"]}'
