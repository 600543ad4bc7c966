"""One gateway with one scripted upstream for all cases of a file that can share it."""

from collections.abc import Iterator

import pytest

from tests.support.batch import BatchClient
from tests.support.serve import RunningHeadway, headway
from tests.support.upstream import ScriptedUpstream


@pytest.fixture(scope="module")
def up() -> Iterator[ScriptedUpstream]:
    """UP, for a whole file."""
    server = ScriptedUpstream().start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def dead_url() -> str:
    """The base URL of a port where nobody listens."""
    server = ScriptedUpstream().start()
    url = server.url
    server.stop()
    return url


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, up: ScriptedUpstream, dead_url: str
) -> Iterator[RunningHeadway]:
    """A gateway whose model ``m`` is served by UP, ``gone`` by nobody, ``slow`` with timeouts."""
    policy = {
        "targets": {
            "up": {
                "base_url": up.url,
                "models": ["m"],
                "lanes": {"batch": {"max_in_flight": 4}},
            },
            "dead": {"base_url": dead_url, "models": ["gone"]},
            "slow": {"base_url": up.url, "models": ["slow"], "timeouts": {"first_byte": "300ms"}},
        }
    }
    env = {"HEADWAY_ROW_ATTEMPTS": "2", "HEADWAY_MIN_WINDOW_SECONDS": "1"}
    with headway(tmp_path_factory.mktemp("shared"), policy, env) as process:
        yield process


@pytest.fixture
def batches(running: RunningHeadway, up: ScriptedUpstream) -> BatchClient:
    """A client of the shared gateway; UP starts without scripts and log."""
    up.clear()
    return BatchClient(running)
