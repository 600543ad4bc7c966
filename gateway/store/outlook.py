"""The work that is left, and forecasts of when it will be done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.store.client import StoreClient
from gateway.store.keys import shard_key
from gateway.store.scripts import run_script

_MOST = 500
_VALUES = 8
_GOOD_SECONDS = 30
_RUNS, _STALLED, _PAUSED = "0", "1", "2"


@dataclass(frozen=True, slots=True)
class OpenSegment:
    """A queued segment: rows and estimated tokens not done. ``turn_ms`` orders a tenant's own.

    One without a name stands for all further ones of its tenant.
    """

    segment: str
    tenant: str
    weight: float
    rows: int
    tokens: int
    deadline_ms: int
    turn_ms: int
    paused: bool


@dataclass(frozen=True, slots=True)
class Outlook:
    """Rows delivered in each hour that was asked for, and what is queued, by deadline."""

    delivered: Mapping[str, int]
    segments: tuple[OpenSegment, ...]


@dataclass(frozen=True, slots=True)
class Forecast:
    """When a segment will be done, None: not known; rows its shard does in a second.

    ``stalled``: for a minute or more no row was done, too long for the deadline. ``paused``: by
    hand, itself, its tenant or everything. ``capped``: a target that could help has used up its
    cost cap.
    """

    eta_ms: int | None
    rate: float
    stalled: bool = False
    paused: bool = False
    capped: bool = False


UNKNOWN = Forecast(None, 0.0)


class QueueOutlook:
    """The part of the queue client that looks ahead."""

    _redis: StoreClient

    async def outlook(self, shard: str, hours: Sequence[str], most: int = _MOST) -> Outlook:
        """What is left: one by one of the 500 segments with the earliest deadlines."""
        values: Sequence[Any] = await run_script(self._redis, "outlook", shard, most, *hours)
        if not values:
            return Outlook({}, ())
        delivered = {hour: int(count) for hour, count in zip(hours, values, strict=False)}
        rows = range(len(hours), len(values), _VALUES)
        return Outlook(delivered, tuple(_segment(values[at : at + _VALUES]) for at in rows))

    async def put_forecasts(self, shard: str, forecasts: Mapping[str, Forecast]) -> None:
        """Replace the forecasts of a shard; they are forgotten after half a minute."""
        flat = [text for name, made in forecasts.items() for text in (name, _text(made))]
        await run_script(self._redis, "forecast", shard, _GOOD_SECONDS, *flat)

    async def forecast(self, shard: str, segment: str) -> Forecast | None:
        """The forecast for a segment; None when there is no fresh one."""
        found = await self._redis.execute_command("HGET", shard_key(shard, "fc"), segment)
        if found is None:
            return None
        eta, rate, state, *capped = found.decode().split(":")
        eta_ms = int(eta) if eta else None
        return Forecast(eta_ms, float(rate), state == _STALLED, state == _PAUSED, bool(capped))


def _segment(values: Sequence[Any]) -> OpenSegment:
    texts = [v.decode() if isinstance(v, bytes) else str(v) for v in values]
    name, tenant, weight, rows, tokens, deadline, priority, paused = texts
    turn = int(deadline) - 60_000 * int(priority)
    return OpenSegment(
        name, tenant, float(weight), int(rows), int(tokens), int(deadline), turn, paused == "1"
    )


def _text(made: Forecast) -> str:
    eta = "" if made.eta_ms is None else str(made.eta_ms)
    state = _PAUSED if made.paused else _STALLED if made.stalled else _RUNS
    return f"{eta}:{made.rate:.6g}:{state}{':capped' if made.capped else ''}"
