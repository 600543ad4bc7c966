"""The process's counters as OpenTelemetry instruments, read only when a reader collects."""

from collections.abc import Callable, Iterable
from functools import partial

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from gateway.telemetry.metrics import LABELS, Histogram, Labels, Metrics


def observe(metrics: Metrics, meter: Meter) -> None:
    """Register every counter with ``meter``, and sum and count of every histogram."""
    for counter in metrics.counters:
        meter.create_observable_counter(
            counter.name.removesuffix("_total"),
            [_values(counter.values.items)],
            description=counter.meaning,
        )
    for histogram in metrics.histograms:
        meter.create_observable_counter(
            f"{histogram.name}_count",
            [_values(partial(_totals, histogram))],
        )
        meter.create_observable_counter(
            f"{histogram.name}_sum",
            [_values(histogram.sums.items)],
            unit="s",
        )


_Callback = Callable[[CallbackOptions], Iterable[Observation]]


def _totals(histogram: Histogram) -> Iterable[tuple[Labels, int]]:
    return ((labels, sum(counts)) for labels, counts in histogram.counts.items())


def _values(read: Callable[[], Iterable[tuple[Labels, float]]]) -> _Callback:
    def collect(_: CallbackOptions) -> list[Observation]:
        # A reader may collect in its own thread: a copy, made in one step, cannot change.
        return [
            Observation(value, dict(zip(LABELS, labels, strict=True)))
            for labels, value in list(read())
        ]

    return collect
