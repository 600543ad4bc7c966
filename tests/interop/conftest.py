"""A gateway before a real model server; only with ``--engine URL`` is anything here collected."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.support.serve import RunningHeadway, headway


def pytest_addoption(parser: pytest.Parser) -> None:
    """The base URL of a running engine, ending in ``/v1``."""
    parser.addoption("--engine", default=None, help="base URL of a running vLLM")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Nothing is run without an engine."""
    del collection_path
    return True if config.getoption("--engine", None) is None else None


@dataclass
class Engine:
    """The model server itself."""

    url: str
    model: str

    @property
    def direct(self) -> Any:
        """A client that goes around the gateway."""
        return openai.OpenAI(base_url=self.url, api_key="x", max_retries=0, timeout=300)

    def running(self) -> float:
        """Calls that it works on at this moment, by its own metrics."""
        text = httpx.get(self.url.removesuffix("/v1") + "/metrics", timeout=10).text
        lines = [line for line in text.splitlines() if line.startswith("vllm:num_requests_running")]
        assert lines, "this is no vLLM"
        return sum(float(line.rpartition(" ")[2]) for line in lines)


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> Engine:
    """The engine named on the command line, and the first model it serves."""
    url = str(request.config.getoption("--engine")).rstrip("/")
    with openai.OpenAI(base_url=url, api_key="x") as client:
        return Engine(url, client.models.list().data[0].id)


@pytest.fixture(scope="session")
def running(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHeadway]:
    """A gateway whose only target is the engine."""
    target = {"kind": "vllm", "base_url": engine.url, "models": {"m": engine.model}}
    with headway(tmp_path_factory.mktemp("interop"), {"targets": {"vllm": target}}) as process:
        yield process


@pytest.fixture
def client(running: RunningHeadway) -> Iterator[openai.OpenAI]:
    """The official client at the gateway."""
    with openai.OpenAI(
        base_url=running.base_url, api_key=running.key, max_retries=0, timeout=300
    ) as made:
        yield made
