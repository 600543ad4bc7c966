"""A gateway before a scripted upstream, and clients that know nothing of either."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients import clients_python, run_program
from tests.support.scenes import play
from tests.support.serve import RunningHeadway, clean_environment, headway, one_target
from tests.support.upstream import ScriptedUpstream

#: What every program begins with.
PRELUDE = """
import asyncio, json, os, time
from typing import Literal
from pydantic import BaseModel
class Number(BaseModel):
    number: int
URL, KEY = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
def messages(text):
    return [{"role": "user", "content": text}]
def kind_of(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "none"
"""


@dataclass
class Stage:
    """The gateway, its upstream, and a folder for the client."""

    upstream: ScriptedUpstream
    running: RunningHeadway
    folder: Path

    def run(self, name: str, packages: tuple[str, ...], code: str, **env: str) -> dict[str, Any]:
        """The JSON object that the Python program prints last."""
        python = clients_python(name, packages)
        return self.command([str(python), "-c", PRELUDE + code], **env)

    def command(self, command: list[str], **env: str) -> dict[str, Any]:
        """The JSON object that a program prints last; it finds the gateway in its environment."""
        known = {
            **clean_environment(),
            "OPENAI_BASE_URL": self.running.base_url,
            "OPENAI_API_KEY": self.running.key,
            "PYTHONPATH": "",
            "PYTHONWARNINGS": "ignore",
            "DO_NOT_TRACK": "1",
            **env,
        }
        found: dict[str, Any] = run_program(command, known, self.folder)
        return found

    def left_after(self, aborted: float) -> float:
        """Seconds from the client's leaving until the upstream noticed."""
        (slow,) = self.upstream.calls("SLOW")
        self.upstream.wait(lambda: slow.peer_closed_at is not None)
        assert slow.peer_closed_at is not None
        return slow.peer_closed_at - aborted


@pytest.fixture(scope="session")
def playing(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[ScriptedUpstream, RunningHeadway]]:
    """One gateway for all clients; what its target refuses is not tried again."""
    upstream = ScriptedUpstream(models=["m"]).start()
    play(upstream)
    policy = one_target(upstream.url, retry={"attempts": 1})
    with headway(tmp_path_factory.mktemp("stage"), policy) as running:
        yield upstream, running
    upstream.stop()


@pytest.fixture
def stage(playing: tuple[ScriptedUpstream, RunningHeadway], tmp_path: Path) -> Stage:
    """The stage with an empty log."""
    upstream, running = playing
    upstream.requests.clear()
    return Stage(upstream, running, tmp_path)


@pytest.fixture
def node() -> str:
    """The ``node`` command."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed")
    return found
