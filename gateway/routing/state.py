"""What a process knows about one target at this moment."""

from gateway.core.errors import (
    HeadwayError,
    OutcomeUnknown,
    StreamInterrupted,
    UpstreamCredential,
    UpstreamFailed,
    UpstreamRefused,
    UpstreamRejected,
    UpstreamThrottled,
    UpstreamTimeout,
)
from gateway.core.targets import EngineLoad
from gateway.policy.target import TargetPolicy
from gateway.routing.breaker import Breaker
from gateway.routing.budget import RetryBudget
from gateway.routing.credentials import Credentials
from gateway.routing.latency import PeakLatency

_FAILURES = (
    OutcomeUnknown,
    StreamInterrupted,
    UpstreamCredential,
    UpstreamFailed,
    UpstreamRefused,
    UpstreamTimeout,
)
_DOWN_SECONDS = 2.0
_TIGHT = 0.9
_TOO_MANY = 429


class TargetState:
    """Whether a target may be called, with which key, and how busy it is. Never waits.

    ``running`` counts the calls of this process in all lanes, ``prefilling`` those that are streams
    without a first token. ``engine`` is what the target itself
    reported last.
    """

    __slots__ = (
        "_others",
        "breaker",
        "budget",
        "credentials",
        "down",
        "engine",
        "name",
        "plain",
        "prefilling",
        "running",
        "streamed",
        "weight",
    )

    def __init__(self, name: str, policy: TargetPolicy) -> None:
        self.name = name
        self.weight = policy.weight or 1.0
        self.breaker = Breaker(policy.breaker)
        self.budget = RetryBudget(policy.retry.budget)
        self.credentials = Credentials(name, len(policy.api_keys))
        self.streamed = PeakLatency()
        self.plain = PeakLatency()
        self.running = 0
        self.prefilling = 0
        self.down = False
        self.engine: EngineLoad | None = None
        self._others = 0.0

    def available(self, now: float) -> bool:
        """Whether a call may be tried here now."""
        if not (self.down or self.breaker.is_open or self.credentials.parked_until > now):
            return True
        return self.wait(now) <= 0

    def wait(self, now: float) -> float:
        """Seconds until a call may be tried here; 0: now."""
        if self.down:
            return _DOWN_SECONDS
        waits = self.credentials.wait(now)
        return max(waits, self.breaker.wait(now)) if self.breaker.is_open else waits

    @property
    def cooling(self) -> bool:
        """Whether it is only for being told to that it may be left alone."""
        return not (self.down or self.breaker.is_open)

    @property
    def load(self) -> float:
        """Calls there: ours, and those of others as far as the target told."""
        load = self.running + self._others
        tight = self.engine is not None and self.engine.kv_use >= _TIGHT
        return 2 * load + 1 if tight else load

    def latency(self, now: float, *, stream: bool) -> float:
        """Seconds that such a call waits for its answer; 0 when unknown."""
        return (self.streamed if stream else self.plain).value(now)

    def answered(self, key: int, seconds: float, now: float, *, stream: bool) -> None:
        """An answer, or the content of a stream, came after ``seconds``."""
        if self.breaker.is_open:
            self.breaker.worked()
        self.credentials.worked(key)
        (self.streamed if stream else self.plain).seen(seconds, now)

    def worked(self) -> None:
        """An answer came to its end."""
        self.breaker.worked()

    def failed(self, error: HeadwayError, now: float) -> None:
        """A call failed. Whose fault it was, its class says."""
        if isinstance(error, _FAILURES):
            self.breaker.failed(now)
        elif isinstance(error, UpstreamThrottled):
            if error.retry_after is None and error.status != _TOO_MANY:
                self.breaker.failed(now)
        elif isinstance(error, UpstreamRejected):
            self.breaker.worked()

    def reported(self, engine: EngineLoad | None) -> None:
        """The target told its load, or did not. Calls that wait there count twice.

        After one that tells it again, the next call tries the target, as it may have been started.
        """
        if engine is not None and self.engine is None:
            self.breaker.probe_now()
        self.engine = engine
        told = 0.0 if engine is None else engine.running + 2 * engine.waiting
        self._others = max(0.0, told - self.running)

    def probed(self, *, healthy: bool) -> None:
        """What the health path said. Once it is good again, the next call tries the target."""
        if healthy and self.down:
            self.breaker.probe_now()
        self.down = not healthy
