"""A gateway for the commands that talk to one."""

from collections.abc import Iterator

import pytest

from tests.support.scripts import error
from tests.support.serve import RunningHeadway, headway, one_target
from tests.support.upstream import ScriptedUpstream


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHeadway]:
    """A gateway whose upstream refuses what says "bad"."""
    upstream = ScriptedUpstream().start()
    upstream.on("bad", error(400, "no"))
    with headway(tmp_path_factory.mktemp("cli"), one_target(upstream.url)) as process:
        yield process
    upstream.stop()
