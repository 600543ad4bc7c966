"""When will what is queued be done? From the pace of each shard and the work ahead in it.

The queue is fair between tenants and takes a tenant's segments by deadline; what would be late so
goes first, three leases of four. The forecast does the same in the mind, with work as a fluid.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from gateway.core.clock import Clock
from gateway.core.loops import keep_doing
from gateway.metering.hours import hour_of
from gateway.store.outlook import Forecast, OpenSegment, Outlook
from gateway.store.queue import QueueClient

log = logging.getLogger(__name__)

_EVERY_SECONDS = 2.0
_MEMORY_SECONDS = 60.0
_LEAST_SECONDS = 4.0
_RESCUED_SHARE = 0.75


class Forecaster:
    """Forecasts for all shards, renewed every 2 seconds. Several processes come to the same.

    ``late`` hears of each shard whether anything in it will be late; ``capped`` says of one whether
    a target that is there for late work has used up its cost cap.
    """

    def __init__(
        self,
        queue: QueueClient,
        clock: Clock,
        late: Callable[[str, bool], None] | None = None,
        capped: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._queue = queue
        self._clock = clock
        self._late = late
        self._capped = capped
        self._paces: dict[str, Pace] = {}
        self._warned: dict[str, set[str]] = {}

    async def run(self) -> None:
        """Until cancelled."""
        await keep_doing(self.step, "forecasting", every=_EVERY_SECONDS)

    async def step(self) -> None:
        """One forecast of every shard."""
        for shard in await self._queue.shards():
            pace = self._paces.setdefault(shard, Pace())
            now = self._clock.now()
            hours = sorted({hour_of(now), hour_of(now - _MEMORY_SECONDS)})
            outlook = await self._queue.outlook(shard, hours)
            pace.note(self._clock.monotonic(), outlook)
            made = forecasts(outlook.segments, pace, int(1000 * now))
            if self._capped(shard):
                made = {name: replace(forecast, capped=True) for name, forecast in made.items()}
            await self._queue.put_forecasts(shard, made)
            self._warn(shard, [s for s in outlook.segments if s.segment], made)

    def _warn(
        self, shard: str, segments: Sequence[OpenSegment], made: Mapping[str, Forecast]
    ) -> None:
        """Say once of each segment that it will be late."""
        late = [s for s in segments if is_late(made[s.segment], s.deadline_ms)]
        if self._late is not None:
            self._late(shard, bool(late))
        known, self._warned[shard] = self._warned.get(shard, set()), {s.segment for s in late}
        for segment in late:
            if segment.segment not in known:
                log.warning(
                    "%s: %s",
                    segment.segment,
                    warning(made[segment.segment], segment.deadline_ms),
                )


@dataclass(frozen=True, slots=True)
class _Sample:
    at: float
    rows: int
    tokens: int


class Pace:
    """Rows and estimated tokens a shard does in a second, over the last minute with work."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque()
        self._delivered: dict[str, int] = {}
        self._open: dict[str, OpenSegment] = {}
        self._mean = 0.0
        self._last = 0.0

    @property
    def rows(self) -> float | None:
        """Rows in a second; None while that is not known."""
        seconds = self._seconds()
        if seconds < _LEAST_SECONDS:
            return None
        return sum(sample.rows for sample in list(self._samples)[1:]) / seconds

    @property
    def tokens(self) -> float | None:
        """Estimated tokens in a second."""
        rows = self.rows
        return None if rows is None else rows * self._mean

    @property
    def idle_seconds(self) -> float:
        """Seconds with work since the last row; 0 until they are a minute."""
        full = self._seconds() >= _MEMORY_SECONDS - 2 * _EVERY_SECONDS
        return self._samples[-1].at - self._last if full and self.rows == 0 else 0.0

    def note(self, at: float, outlook: Outlook) -> None:
        """The shard as it is at ``at``, in monotonic seconds."""
        before, self._delivered = self._delivered, dict(outlook.delivered)
        known, self._open = self._open, {s.segment: s for s in outlook.segments}
        if not outlook.segments:
            self._samples.clear()
            return
        rows = sum(max(0, n - before.get(hour, 0)) for hour, n in self._delivered.items())
        if not before or not self._samples:
            rows = 0
        done = [(known[name], now) for name, now in self._open.items() if name and name in known]
        seen = sum(was.rows - now.rows for was, now in done)
        tokens = sum(was.tokens - now.tokens for was, now in done)
        if rows > 0 or not self._samples:
            self._last = at
        self._learn(seen, tokens)
        self._samples.append(_Sample(at, rows, tokens))
        while at - self._samples[0].at > _MEMORY_SECONDS:
            self._samples.popleft()

    def _learn(self, rows: int, tokens: int) -> None:
        """The size of a row: of those done lately, before that of those that wait."""
        if rows > 0 and tokens > 0:
            share = 0.3 if self._mean else 1.0
            self._mean += share * (tokens / rows - self._mean)
        elif not self._mean:
            left = sum(segment.rows for segment in self._open.values())
            self._mean = sum(s.tokens for s in self._open.values()) / max(1, left)

    def _seconds(self) -> float:
        return self._samples[-1].at - self._samples[0].at if self._samples else 0.0


def forecasts(segments: Sequence[OpenSegment], pace: Pace, now_ms: int) -> dict[str, Forecast]:
    """The forecast for each segment."""
    rows, tokens = pace.rows or 0.0, pace.tokens or 0.0
    named = [segment for segment in segments if segment.segment]
    paused = Forecast(None, 0.0, paused=True)
    made = {
        s.segment: paused if s.paused else Forecast(None, rows, _stalled(s, pace, now_ms))
        for s in named
    }
    if tokens <= 0:
        return made
    fair = _fair([segment for segment in segments if not segment.paused], tokens)
    ahead = 0.0
    for segment in sorted(named, key=lambda s: s.deadline_ms):
        if segment.paused:
            continue
        ahead += segment.tokens
        seconds = fair[segment.segment]
        if now_ms + 1000 * seconds > segment.deadline_ms:
            seconds = min(seconds, ahead / tokens / _RESCUED_SHARE)
        made[segment.segment] = Forecast(int(now_ms + 1000 * seconds), rows)
    return made


def _stalled(segment: OpenSegment, pace: Pace, now_ms: int) -> bool:
    """Whether nothing is done, and a row now and then, as seldom as that, would not do."""
    idle = pace.idle_seconds
    return idle > 0 and now_ms + 1000 * idle * segment.rows > segment.deadline_ms


def is_late(forecast: Forecast, deadline_ms: int) -> bool:
    """Whether the deadline cannot be met as things are."""
    return forecast.stalled or (forecast.eta_ms is not None and forecast.eta_ms > deadline_ms)


def warning(forecast: Forecast, deadline_ms: int) -> str | None:
    """The same in words."""
    why = " The cost cap for late work is used up." if forecast.capped else ""
    if forecast.stalled:
        return f"No row was done in the last minute; at this pace the deadline cannot be met.{why}"
    if not is_late(forecast, deadline_ms) or forecast.eta_ms is None:
        return None
    late = (forecast.eta_ms - deadline_ms) / 1000
    pace = f"At {forecast.rate:.3g} rows per second"
    return f"{pace} the deadline will be missed by {late:.0f} s.{why}"


def _fair(segments: Sequence[OpenSegment], rate: float) -> dict[str, float]:
    """Seconds until each is done when tenants share by weight and take their own in turn."""
    waiting: dict[str, list[OpenSegment]] = {}
    for segment in sorted(segments, key=lambda s: s.turn_ms, reverse=True):
        waiting.setdefault(segment.tenant, []).append(segment)
    done: dict[str, float] = {}
    # what every tenant got so far, per weight; a segment is done when that reaches its mark
    level = now = 0.0
    total = sum(own[-1].weight for own in waiting.values())
    marks = [(own[-1].tokens / own[-1].weight, tenant) for tenant, own in waiting.items()]
    heapify(marks)
    while marks:
        mark, tenant = heappop(marks)
        now += (mark - level) * total / rate
        level = mark
        segment = waiting[tenant].pop()
        done[segment.segment] = now
        total -= segment.weight
        if waiting[tenant]:
            following = waiting[tenant][-1]
            total += following.weight
            heappush(marks, (mark + following.tokens / following.weight, tenant))
    return done
