"""Waiting for an end."""

from itertools import repeat
from typing import Any

import pytest

from gateway.cli import following
from gateway.cli.following import until_ended
from gateway.core.errors import Unavailable


def test_a_gateway_that_is_away_is_waited_for() -> None:
    """What it tells between is heard; what had ended before is not asked for again."""
    told: list[Any] = [Unavailable("away"), {"id": "x", "status": "running"}, Unavailable("away")]
    told.append({"id": "x", "status": "failed"})
    seen: list[str] = []

    def read(name: str) -> dict[str, Any]:
        assert name == "x"
        answer = told.pop(0)
        if isinstance(answer, Unavailable):
            raise answer
        return dict(answer)

    begun = {"id": "x", "status": "queued"}
    ended = until_ended(begun, read, repeat(0.0), lambda now: seen.append(now["status"]))
    assert (ended["status"], seen, told) == ("failed", ["running", "failed"], [])
    assert until_ended(ended, read, repeat(0.0)) is ended


def test_one_that_stays_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a minute."""
    monkeypatch.setattr(following, "AWAY_SECONDS", -1.0)

    def read(_: str) -> dict[str, Any]:
        raise Unavailable("away")

    with pytest.raises(Unavailable):
        until_ended({"id": "x", "status": "queued"}, read, repeat(0.0))
