"""What a process knows about one target at this moment, and what it tells the operator."""

import logging

from gateway.core.errors import (
    HeadwayError,
    OutcomeUnknown,
    StreamInterrupted,
    UpstreamCredential,
    UpstreamError,
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

log = logging.getLogger(__name__)

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
_NOT_FOUND = 404


class TargetState:
    """Whether a target may be called, with which key, and how busy it is. Never waits.

    ``running`` counts the calls of this process in all lanes, ``prefilling`` those that are streams
    without a first token. ``engine`` is what the target itself
    reported last.
    """

    __slots__ = (
        "_last_failure",
        "_no_such_path",
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
        self.breaker = Breaker(policy.breaker, self._turned)
        self.budget = RetryBudget(policy.retry.budget)
        self.credentials = Credentials(name, len(policy.api_keys))
        self.streamed = PeakLatency()
        self.plain = PeakLatency()
        self.running = 0
        self.prefilling = 0
        self.down = False
        self.engine: EngineLoad | None = None
        self._others = 0.0
        self._last_failure = ""
        self._no_such_path = False

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
            self._failed(error, now)
        elif isinstance(error, UpstreamThrottled):
            if error.retry_after is None and error.status != _TOO_MANY:
                self._failed(error, now)
        elif isinstance(error, UpstreamRejected):
            self.breaker.worked()
            if error.status == _NOT_FOUND and "model" not in error.message.lower():
                self._tell_of_path()

    def _failed(self, error: UpstreamError, now: float) -> None:
        status = "" if error.status is None else f", status {error.status}"
        self._last_failure = f"{error.code}{status}"
        self.breaker.failed(now)

    def _turned(self) -> None:
        if self.breaker.is_open:
            log.warning(
                "target %s is left out: too many calls failed; the last: %s",
                self.name,
                self._last_failure,
            )
        else:
            log.info("target %s works again", self.name)

    def _tell_of_path(self) -> None:
        if not self._no_such_path:
            self._no_such_path = True
            log.warning(
                "target %s answers 404 and speaks of no model: check the path of its base_url, "
                "which ends before /chat/completions, as in https://host/v1",
                self.name,
            )

    @property
    def trouble(self) -> str | None:
        """In words, why calls do not go here as they should; None: they do."""
        if self.down:
            return "its health path gives no good answer"
        if self.credentials.trouble or not self.breaker.is_open:
            return self.credentials.trouble
        return f"left out, as calls failed; the last: {self._last_failure}"

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
        if self.down is not healthy:
            return
        self.down = not healthy
        if healthy:
            self.breaker.probe_now()
            log.info("target %s: its health path is well again", self.name)
        else:
            log.warning("target %s is left out: its health path gives no good answer", self.name)
