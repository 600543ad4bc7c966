"""The arms as a picture: how long people wait, and how much offline work is done meanwhile."""

import math
from collections.abc import Mapping
from html import escape

from gateway.bench.coserve.figures import Spread

_WIDTH, _ROW, _LEFT, _BAR, _GAP = 900, 34, 236, 300, 30
_TOP, _BOTTOM = 64, 34
_FONT = 'font-family="system-ui, sans-serif"'
_INK, _FAINT, _WAIT, _WORK = "#1f2328", "#656d76", "#d1603d", "#3b7dd8"


def draw(title: str, arms: Mapping[str, Mapping[str, Spread]]) -> str:
    """An SVG with two bars an arm: p99 TTFT on a logarithmic scale, and offline tokens a second."""
    height = _TOP + _ROW * len(arms) + _BOTTOM
    waits = [s["ttft_p99"].mean for s in arms.values() if not math.isnan(s["ttft_p99"].mean)]
    work = [s["offline_tokens"].mean for s in arms.values()]
    least = 10 ** math.floor(math.log10(min(waits, default=1.0)))
    most = max(waits, default=1.0)
    right = _LEFT + _BAR + _GAP + 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {_FONT}>',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(16, 26, title, size=16),
        _text(_LEFT, 52, "p99 time to first token (logarithmic)", fill=_FAINT),
        _text(right, 52, "offline tokens per second", fill=_FAINT),
    ]
    for at, (name, figures) in enumerate(arms.items()):
        top = _TOP + at * _ROW
        parts.append(_text(_LEFT - 10, top + 17, name, anchor="end"))
        wait, done = figures["ttft_p99"].mean, figures["offline_tokens"].mean
        if not math.isnan(wait):
            share = math.log(wait / least) / math.log(most / least) if most > least else 1.0
            parts += _bar(_LEFT, top, share * _BAR, _WAIT, _wait(wait))
        if done:
            parts += _bar(right, top, done / max(work) * (_BAR - 90), _WORK, f"{done:,.0f}")
    parts.append(_text(16, height - 10, _note(arms), fill=_FAINT, size=11))
    return "\n".join([*parts, "</svg>", ""])


def _bar(left: float, top: float, width: float, fill: str, label: str) -> list[str]:
    wide = max(2.0, width)
    return [
        f'<rect x="{left}" y="{top + 3}" width="{wide:.1f}" height="20" rx="2" fill="{fill}"/>',
        _text(left + wide + 6, top + 17, label),
    ]


def _text(
    x: float, y: float, text: str, *, fill: str = _INK, anchor: str = "start", size: int = 13
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" fill="{fill}" text-anchor="{anchor}" '
        f'font-size="{size}">{escape(text)}</text>'
    )


def _wait(milliseconds: float) -> str:
    seconds = milliseconds / 1000
    return f"{seconds:,.0f} s" if seconds >= 10 else f"{milliseconds:,.0f} ms"  # noqa: PLR2004


def _note(arms: Mapping[str, Mapping[str, Spread]]) -> str:
    calls = max(figures["calls"].mean for figures in arms.values())
    return f"{calls:,.0f} interactive calls in each slice; means over the slices"
