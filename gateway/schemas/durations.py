"""Spans of time as requests write them."""

import re

_DURATION = re.compile(r"([1-9]\d{0,8})([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def duration_seconds(text: str) -> int | None:
    """The seconds of ``90s``, ``30m``, ``24h`` or ``2d``; None for any other text."""
    match = _DURATION.fullmatch(text)
    return int(match[1]) * _UNITS[match[2]] if match else None
