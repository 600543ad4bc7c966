"""Arms as people and programs read them."""

import io
import json
import math
from dataclasses import fields

import pytest
from rich.console import Console

from gateway.bench.coserve.figures import Figures, Spread
from gateway.bench.coserve.show import as_json, cell, show_arms


def _arm(value: float) -> dict[str, Spread]:
    return {f.name: Spread(value, value * 0.9, value * 1.1) for f in fields(Figures)}


def test_a_cell_has_the_mean_and_the_spread() -> None:
    """Unless all slices agree, or there is nothing."""
    assert cell(Spread(1.234, 1.1, 1.4), ".2f") == "1.23\n1.10-1.40"
    assert cell(Spread(2, 2, 2), ".0f") == "2"
    assert cell(Spread(math.nan, math.nan, math.nan), ".0f") == "-"


def test_the_table_has_a_column_for_each_arm() -> None:
    """And only lines that say something."""
    console = Console(width=120, record=True)
    missing = _arm(3.0) | {"harvest": Spread(math.nan, math.nan, math.nan)}
    show_arms(console, "load", {"one": missing, "two": missing})
    text = console.export_text()
    assert "one" in text
    assert "two" in text
    assert "TTFT p99" in text
    assert "harvest" not in text


def test_json_has_no_odd_numbers() -> None:
    """What is not a number is null."""
    odd = _arm(3.0) | {"harvest": Spread(math.nan, math.nan, math.nan)}
    said = json.loads(json.dumps(as_json({"load": {"one": odd}}), allow_nan=False))
    assert said["load"]["one"]["harvest"] is None
    assert said["load"]["one"]["slo"]["low"] < said["load"]["one"]["slo"]["high"]


@pytest.mark.parametrize("width", [30, 80])
def test_no_figure_is_cut_where_there_is_little_room(width: int) -> None:
    """Nine arms of long figures: in several tables."""
    console = Console(width=width, record=True, file=io.StringIO())
    arms = {f"arm number {number}": _arm(10_000.0 * number) for number in range(1, 10)}
    show_arms(console, "load", arms)
    text = console.export_text()
    assert "…" not in text
    for number in range(1, 10):
        assert f"{9000 * number:,}-{11_000 * number:,}" in text
