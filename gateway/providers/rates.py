"""Rate limits that providers tell in the headers of their answers.

OpenAI and most others: ``x-ratelimit-limit-requests``, ``-remaining-requests``,
``-reset-requests`` and the same for tokens. Anthropic: ``anthropic-ratelimit-requests-limit`` and
so on, with times of day as resets.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from gateway.core.rates import RateLimit, RateLimits

_MARK = b"ratelimit-"
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def rates_of(raw: Iterable[tuple[bytes, bytes]], now: Callable[[], float]) -> RateLimits | None:
    """The limits in header lines as received; None when there are none."""
    found = [(name.lower(), value) for name, value in raw if _MARK in name.lower()]
    if not found:
        return None
    told = {name.decode("latin-1"): value.decode("latin-1").strip() for name, value in found}
    return RateLimits(_quota(told, "requests", now), _quota(told, "tokens", now))


def _quota(told: Mapping[str, str], of: str, now: Callable[[], float]) -> RateLimit:
    def value(what: str) -> str | None:
        usual = told.get(f"x-ratelimit-{what}-{of}")
        return usual if usual is not None else told.get(f"anthropic-ratelimit-{of}-{what}")

    return RateLimit(
        _number(value("limit")), _number(value("remaining")), _span(value("reset"), now)
    )


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _span(text: str | None, now: Callable[[], float]) -> float | None:
    """Seconds of ``12``, ``1s``, ``6m0s``, ``20ms`` or a time of day in ISO form."""
    if text is None or (plain := _number(text)) is not None:
        return None if text is None else plain
    parts = _SPAN.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp() - now())
    except ValueError:
        return None
