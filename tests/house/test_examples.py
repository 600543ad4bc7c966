"""The commands and programs of the documentation, run against a real server."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.docs import ROOT, Block, blocks
from tests.support.node import node_modules
from tests.support.serve import KEY, RunningHeadway, headway
from tests.support.upstream import ScriptedUpstream

ADDRESS = "127.0.0.1:8000"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHeadway]:
    """The README's policy, its vLLM played by the scripted upstream."""
    server = ScriptedUpstream(models=["my-chat", "my-embed"]).start()
    readme = next(block for block in blocks("policy") if block.page == "README.md")
    policy = yaml.safe_load(readme.text)
    policy["targets"]["vllm"]["base_url"] = server.url
    with headway(tmp_path_factory.mktemp("examples"), policy) as process:
        yield process
    server.stop()


def run(argv: list[str], running: RunningHeadway, folder: Path) -> str:
    env = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "HEADWAY_API_KEY": KEY,
        "HEADWAY_DATA_DIR": str(running.data_dir),
    }
    done = subprocess.run(
        argv, env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def adapted(block: Block, running: RunningHeadway) -> str:
    return block.text.replace(ADDRESS, running.root.removeprefix("http://"))


@pytest.mark.parametrize("block", blocks("test: sh"), ids=str)
def test_shell_examples(block: Block, running: RunningHeadway, tmp_path: Path) -> None:
    """Each exits 0; a line of status codes holds nothing but 200, one for each call."""
    text = adapted(block, running)
    output = run(["bash", "-euo", "pipefail", "-c", text], running, tmp_path)
    assert output
    if "http_code" in text:
        assert output.split() == ["200"] * 64


@pytest.mark.parametrize("block", blocks("test: python"), ids=str)
def test_python_examples(block: Block, running: RunningHeadway, tmp_path: Path) -> None:
    """Each runs to its end with the official client."""
    output = run([sys.executable, "-c", adapted(block, running)], running, tmp_path)
    assert output.strip()
    if "batches.create" in block.text:
        assert output.startswith("completed")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("block", blocks("test: node"), ids=str)
def test_node_examples(block: Block, running: RunningHeadway, tmp_path: Path) -> None:
    """Each runs to its end with the official npm package."""
    (tmp_path / "node_modules").symlink_to(node_modules())
    (tmp_path / "example.mjs").write_text(adapted(block, running))
    assert run(["node", "example.mjs"], running, tmp_path).strip()


def test_batch_from_the_shell(running: RunningHeadway, tmp_path: Path) -> None:
    """``headway batch submit --wait --output`` as the README has it."""
    line = '{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": '
    line += '{"model": "my-chat", "messages": [{"role": "user", "content": "Hi"}]}}\n'
    (tmp_path / "rows.jsonl").write_text(line)
    command = "headway batch submit rows.jsonl --wait --output answers.jsonl"
    assert command in (ROOT / "README.md").read_text()
    run(command.split(), running, tmp_path)
    assert '"custom_id":"a"' in (tmp_path / "answers.jsonl").read_text().replace(" ", "")
