"""What watches the calls of a process: its counters, and a collector when one is configured."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from gateway.bootstrap.share import Share
from gateway.core.errors import ConfigError
from gateway.core.settings import Settings
from gateway.metering.latency import FreshLatency
from gateway.metering.observed import MetricsObserver
from gateway.metering.record import CallRecord
from gateway.policy.model import Policy
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.multiprocess import MultiprocessMetrics

Observe = Callable[[CallRecord], None]


class Observers:
    """``each`` are for the ledger, ``page`` gives the metrics as text, ``loops`` run beside.

    With ``share`` the page is that of all processes of a group. Raises ConfigError when the
    collector's package is missing.
    """

    def __init__(self, settings: Settings, policy: Policy, share: Share | None = None) -> None:
        self.metrics = Metrics(policy.served())
        self.page: Callable[[], str] = self.metrics.text
        self._multiprocess: MultiprocessMetrics | None = None
        if share is not None:
            self._multiprocess = MultiprocessMetrics(self.metrics, share.folder, str(share.index))
            self.page = self._multiprocess.text
        self.latency = FreshLatency()
        self.each: list[Observe] = [MetricsObserver(self.metrics).observe, self.latency.observe]
        self._close: Callable[[], None] | None = None
        if settings.otlp_endpoint is not None:
            self._send_to(settings.otlp_endpoint, settings.trace_ratio)

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """To be run until the end."""
        return [] if self._multiprocess is None else [self._multiprocess.run()]

    async def aclose(self) -> None:
        """Send what waits, without holding up the event loop."""
        if self._close is not None:
            await asyncio.to_thread(self._close)

    def _send_to(self, endpoint: str, trace_ratio: float) -> None:
        try:
            from gateway.metering.spans import SpanObserver  # noqa: PLC0415 - an extra, if wanted
            from gateway.telemetry.otlp import Collector  # noqa: PLC0415 - as above
        except ImportError:
            raise ConfigError(
                "HEADWAY_OTLP_ENDPOINT needs another package: pip install 'headway[otlp]'"
            ) from None
        collector = Collector(endpoint, self.metrics, trace_ratio)
        self.each.append(SpanObserver(collector.tracer).observe)
        self._close = collector.close
