"""Hours of the bill: ``2026113005`` is 05:00 to 06:00 UTC of that day."""

from datetime import UTC, datetime, timedelta


def hour_of(unix_seconds: float) -> str:
    """The hour in which a moment lies."""
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y%m%d%H")


def last_hours(now: float, count: int) -> list[str]:
    """The hour of ``now`` and those before it, ``count`` in all, oldest first."""
    newest = datetime.fromtimestamp(now, UTC)
    return [
        (newest - timedelta(hours=back)).strftime("%Y%m%d%H") for back in reversed(range(count))
    ]
