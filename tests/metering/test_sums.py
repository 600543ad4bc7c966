"""Records added up."""

from typing import Any

from gateway.core.usage import MOST_TOKENS
from gateway.metering.sums import Sums
from tests.support.calls import HOUR_START

HOUR = "2026113005"


def test_records_of_a_group_are_added() -> None:
    """Same hour, lane, model, key and status: one field a figure, and none for a nought."""
    added = _sums(_line(prompt=3), _line(prompt=4), _line(status="failed"))
    assert added == {
        HOUR: {
            "interactive|made-up|k1|ok|requests": 2,
            "interactive|made-up|k1|ok|prompt": 7,
            "interactive|made-up|k1|failed|requests": 1,
        }
    }


def test_models_nobody_serves_share_one_name() -> None:
    """A caller's text never becomes a field of the store."""
    added = _sums(_line(target=None, http_status=404, status="failed"))
    assert added == {HOUR: {"interactive|%28unknown%29|k1|failed|requests": 1}}


def test_a_figure_beyond_all_bounds_does_not_stop_the_sums() -> None:
    """The store counts in 64 bits, and a line that it refuses would be sent for ever."""
    fields = _sums(_line(target="t", prompt=2**64 - 1))[HOUR]
    assert fields["interactive|made-up|k1|ok|prompt"] == MOST_TOKENS


def _sums(*lines: dict[str, Any]) -> dict[str, dict[str, int]]:
    added = Sums()
    for line in lines:
        added.add(line)
    return added.hours()


def _line(**members: Any) -> dict[str, Any]:
    line = {
        "ended_at": HOUR_START,
        "target": "t",
        "http_status": 200,
        "lane": "interactive",
        "model": "made-up",
        "key": "k1",
        "status": "ok",
        "prompt": 0,
        "completion": 0,
        "cached": 0,
        "reasoning": 0,
        "estimated": False,
    }
    return line | members
