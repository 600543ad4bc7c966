"""Changing an engine while it runs: for tests of what a gateway makes of it."""

from dataclasses import replace
from typing import Any

from gateway.core.errors import ConfigError, InvalidRequest
from gateway.schemas.requests import Check, between, boolean, read_object
from gateway.simulator.engine import Engine

_CHECKS: dict[str, Check] = {
    "speed": between(0.001, 1000),
    "kv_tokens": between(1, None, whole=True),
    "max_num_seqs": between(1, None, whole=True),
    "max_num_batched_tokens": between(1, None, whole=True),
    "metrics": boolean,
}


class Control:
    """What was changed since the start. ``metrics``: whether they are served."""

    def __init__(self, engine: Engine) -> None:
        self.metrics = True
        self._engine = engine
        self._original = engine.profile
        self._speed = 1.0

    def change(self, body: bytes) -> None:
        """Take the members that are named; takes effect with the next step.

        Raises InvalidRequest, and then changes nothing.
        """
        members = read_object(body)
        for name, value in members.items():
            if name not in _CHECKS:
                raise InvalidRequest(f"There is no {name!r} to change.", param=name)
            _CHECKS[name](name, value)
        speed = members.pop("speed", self._speed)
        metrics = members.pop("metrics", self.metrics)
        now = self._engine.profile
        times = {name: getattr(self._original, name) for name in ("a", "b", "c", "h", "row")}
        try:
            self._engine.profile = replace(now, **{**times, **members}).faster(speed)
        except ConfigError as error:
            self._engine.profile = now
            raise InvalidRequest(error.message) from None
        self._speed, self.metrics = speed, metrics

    def state(self) -> dict[str, Any]:
        """Everything that can be changed, as it is, and what runs."""
        engine, profile = self._engine, self._engine.profile
        return {
            "speed": self._speed,
            "kv_tokens": profile.kv_tokens,
            "max_num_seqs": profile.max_num_seqs,
            "max_num_batched_tokens": profile.max_num_batched_tokens,
            "metrics": self.metrics,
            "running": engine.running,
            "waiting": engine.waiting,
            "kv_used": engine.kv_used,
            "preemptions": engine.preemptions,
        }
