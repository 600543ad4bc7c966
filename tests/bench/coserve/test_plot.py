"""The picture."""

import math
from dataclasses import fields
from xml.etree import ElementTree as ET

from gateway.bench.coserve.figures import Figures, Spread
from gateway.bench.coserve.plot import draw


def _arm(ttft: float, offline: float) -> dict[str, Spread]:
    figures = {field.name: Spread(1, 1, 1) for field in fields(Figures)}
    figures["ttft_p99"] = Spread(ttft, ttft, ttft)
    figures["offline_tokens"] = Spread(offline, offline, offline)
    return figures


def _widths(svg: str, fill: str) -> list[float]:
    root = ET.fromstring(svg)
    return [float(r.attrib["width"]) for r in root if r.attrib.get("fill") == fill]


def test_bars_are_as_long_as_their_figures() -> None:
    """Waits logarithmically, work linearly; names are escaped."""
    arms = {
        "alone": _arm(400, 0),
        "<naive>": _arm(90_000, 16_000),
        "ours": _arm(600, 12_000),
        "offline": _arm(math.nan, 20_000),
    }
    svg = draw("Arms & more", arms)
    waits, work = _widths(svg, "#d1603d"), _widths(svg, "#3b7dd8")
    assert waits[0] < waits[2] < waits[1]
    assert work[1] / work[0] == 12_000 / 16_000
    assert len(work) == 3
    assert "&lt;naive&gt;" in svg
    assert "90 s" in svg


def test_arms_without_calls_are_drawn_too() -> None:
    """With their work alone."""
    svg = draw("Arms", {"offline": _arm(math.nan, 20_000)})
    assert (_widths(svg, "#d1603d"), len(_widths(svg, "#3b7dd8"))) == ([], 1)
