"""The scripted upstream as fixtures."""

from collections.abc import Iterator

import pytest

from tests.support.upstream import ScriptedUpstream


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    """UP: a fresh scripted upstream."""
    server = ScriptedUpstream().start()
    yield server
    server.stop()


@pytest.fixture
def upstream2() -> Iterator[ScriptedUpstream]:
    """UP2: a second one."""
    server = ScriptedUpstream().start()
    yield server
    server.stop()
