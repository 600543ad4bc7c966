"""A provider's rate limits, as the scripted upstream keeps them and as its log shows them."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.support.answers import Pace, Shape, generate, usage_for
from tests.support.exchange import Exchange, Seen


@dataclass
class Limiter:
    """A script: at most ``requests`` calls and ``tokens`` tokens in any ``seconds``, else 429.

    ``tell``: answers carry the limits in headers; ``retry``: refusals carry Retry-After. Refused
    calls count for nothing.
    """

    requests: int
    seconds: float
    tokens: int | None = None
    tell: bool = True
    retry: bool = True
    refused: int = 0
    _taken: deque[tuple[float, int]] = field(default_factory=deque)

    async def __call__(self, exchange: Exchange) -> None:
        """Answer or refuse one call."""
        now = exchange.seen.at
        while self._taken and self._taken[0][0] <= now - self.seconds:
            self._taken.popleft()
        usage = usage_for(Shape(chat=True), exchange.seen.json)
        count, used = len(self._taken), sum(tokens for _, tokens in self._taken)
        wants = int(usage["total_tokens"])
        fits = self.tokens is None or used + wants <= self.tokens
        if count < self.requests and fits:
            self._taken.append((now, wants))
            self._tell(exchange, count + 1, used + wants, now)
            await generate(exchange, Shape(chat=True), Pace())
            return
        self.refused += 1
        self._tell(exchange, count, used, now)
        if self.retry:
            exchange.headers["retry-after"] = f"{self._reset(now):.3f}"
        error = {"message": "Rate limit reached", "type": "requests", "param": None, "code": None}
        exchange.json({"error": error}, 429)

    def _tell(self, exchange: Exchange, count: int, used: int, now: float) -> None:
        if not self.tell:
            return
        limits = {"requests": (self.requests, count)}
        if self.tokens is not None:
            limits["tokens"] = (self.tokens, used)
        for name, (limit, taken) in limits.items():
            exchange.headers[f"x-ratelimit-limit-{name}"] = str(limit)
            exchange.headers[f"x-ratelimit-remaining-{name}"] = str(max(0, limit - taken))
            exchange.headers[f"x-ratelimit-reset-{name}"] = f"{1000 * self._reset(now):.0f}ms"

    def _reset(self, now: float) -> float:
        return self._taken[0][0] + self.seconds - now if self._taken else 0.0


def most_in_any(seconds: float, calls: Iterable[Seen]) -> int:
    """The most calls whose arrivals lie within one stretch of ``seconds``."""
    times = sorted(seen.at for seen in calls)
    most = first = 0
    for last, at in enumerate(times):
        while times[first] <= at - seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


def most_tokens_in_any(seconds: float, calls: Iterable[Seen]) -> int:
    """The same, in tokens of the answers."""
    taken = sorted((seen.at, (seen.usage or {}).get("total_tokens", 0)) for seen in calls)
    most = first = held = 0
    for at, tokens in taken:
        held += tokens
        while taken[first][0] <= at - seconds:
            held -= taken[first][1]
            first += 1
        most = max(most, held)
    return most
