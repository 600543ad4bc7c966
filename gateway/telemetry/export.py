"""The process's counters as OpenTelemetry instruments, read only when a reader collects."""

from collections.abc import Callable, Iterable

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from gateway.telemetry.metrics import LABELS, Counter, Metrics


def observe(metrics: Metrics, meter: Meter) -> None:
    """Register every counter with ``meter``, and sum and count of every histogram."""
    for counter in metrics.counters:
        meter.create_observable_counter(
            counter.name.removesuffix("_total"), [_reader(counter)], description=counter.meaning
        )
    for histogram in metrics.histograms:
        counts, sums = histogram.counts, histogram.sums
        meter.create_observable_counter(
            f"{histogram.name}_count",
            [_values(lambda c=counts: ((k, sum(v)) for k, v in c.items()))],  # type: ignore[misc]  # bound per turn
        )
        meter.create_observable_counter(
            f"{histogram.name}_sum",
            [_values(lambda s=sums: s.items())],  # type: ignore[misc]  # bound per turn
            unit="s",
        )


_Callback = Callable[[CallbackOptions], Iterable[Observation]]


def _reader(counter: Counter) -> _Callback:
    return _values(counter.values.items)


def _values(read: Callable[[], Iterable[tuple[tuple[str, ...], float]]]) -> _Callback:
    def collect(_: CallbackOptions) -> list[Observation]:
        # A reader may collect in its own thread: a copy, made in one step, cannot change.
        return [
            Observation(value, dict(zip(LABELS, labels, strict=True)))
            for labels, value in list(read())
        ]

    return collect
