"""What watches the calls of a process: its counters, and a collector when one is configured."""

import asyncio
from collections.abc import Callable

from gateway.core.errors import ConfigError
from gateway.core.settings import Settings
from gateway.metering.latency import FreshLatency
from gateway.metering.observed import MetricsObserver, SpanObserver
from gateway.metering.record import CallRecord
from gateway.policy.model import Policy
from gateway.telemetry.metrics import Metrics

Observe = Callable[[CallRecord], None]


class Observers:
    """``each`` are for the ledger. Raises ConfigError when the collector's package is missing."""

    def __init__(self, settings: Settings, policy: Policy) -> None:
        self.metrics = Metrics(policy.models())
        self.latency = FreshLatency()
        self.each: list[Observe] = [MetricsObserver(self.metrics).observe, self.latency.observe]
        self._close: Callable[[], None] | None = None
        if settings.otlp_endpoint is not None:
            self._send_to(settings.otlp_endpoint, settings.trace_ratio)

    async def aclose(self) -> None:
        """Send what waits, without holding up the event loop."""
        if self._close is not None:
            await asyncio.to_thread(self._close)

    def _send_to(self, endpoint: str, trace_ratio: float) -> None:
        try:
            from gateway.telemetry.otlp import Collector  # noqa: PLC0415 - an extra, if wanted
        except ImportError:
            raise ConfigError(
                "HEADWAY_OTLP_ENDPOINT needs another package: pip install 'headway[otlp]'"
            ) from None
        collector = Collector(endpoint, self.metrics, trace_ratio)
        self.each.append(SpanObserver(collector.tracer).observe)
        self._close = collector.close
