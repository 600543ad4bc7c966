"""Counters of a process: plain numbers on the hot path, read when somebody asks.

Labels are lane, target, model and status; never a key or tenant, for `headway usage` answers
that. Models are those of the policy; whatever else a caller writes is counted as ``(other)``.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

LABELS: Final = ("lane", "target", "model", "status")
OTHER_MODEL: Final = "(other)"
SECONDS: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0
)  # fmt: skip
Labels = tuple[str, str, str, str]
Gauge = Callable[[], Iterable[tuple[Labels, float]]]


class Counter:
    """A sum that only grows, per labels."""

    def __init__(self, name: str, meaning: str) -> None:
        self.name = name
        self.meaning = meaning
        self.values: defaultdict[Labels, float] = defaultdict(float)

    def add(self, labels: Labels, amount: float = 1) -> None:
        """Add to the sum of ``labels``."""
        self.values[labels] += amount

    def lines(self) -> Iterator[str]:
        """Prometheus text."""
        yield from _head(self.name, self.meaning, "counter")
        for labels, value in self.values.items():
            yield f"{self.name}{{{_spelled(labels)}}} {value:g}"


class Histogram:
    """How often a number of seconds was at most each bound, per labels."""

    def __init__(self, name: str, meaning: str) -> None:
        self.name = name
        self.meaning = meaning
        self.counts: defaultdict[Labels, list[int]] = defaultdict(lambda: [0] * (len(SECONDS) + 1))
        self.sums: defaultdict[Labels, float] = defaultdict(float)

    def add(self, labels: Labels, value: float) -> None:
        """Count one value."""
        self.counts[labels][bisect_left(SECONDS, value)] += 1
        self.sums[labels] += value

    def lines(self) -> Iterator[str]:
        """Prometheus text."""
        yield from _head(self.name, self.meaning, "histogram")
        for labels, counts in self.counts.items():
            text, total = _spelled(labels), 0
            for bound, count in zip((*SECONDS, "+Inf"), counts, strict=True):
                total += count
                yield f'{self.name}_bucket{{{text},le="{bound}"}} {total}'
            yield f"{self.name}_sum{{{text}}} {self.sums[labels]:g}"
            yield f"{self.name}_count{{{text}}} {total}"


class Metrics:
    """All counters of a process. Use from one event loop."""

    def __init__(self, models: Iterable[str]) -> None:
        self._models = frozenset(models)
        self._gauges: list[tuple[str, str, Gauge]] = []
        self._added: defaultdict[str, defaultdict[Labels, float]] = defaultdict(
            lambda: defaultdict(float)
        )
        self.requests = Counter("headway_requests_total", "Calls that ended.")
        self.attempts = Counter("headway_attempts_total", "Tries at a target.")
        self.prompt = Counter("headway_prompt_tokens_total", "Prompt tokens.")
        self.completion = Counter("headway_completion_tokens_total", "Completion tokens.")
        self.duration = Histogram("headway_request_duration_seconds", "Length of a call.")
        self.ttft = Histogram("headway_time_to_first_token_seconds", "Start to first content.")
        self.tpot = Histogram("headway_time_per_output_token_seconds", "Mean gap of a call.")

    @property
    def counters(self) -> tuple[Counter, ...]:
        """Every counter."""
        return (self.requests, self.attempts, self.prompt, self.completion)

    @property
    def histograms(self) -> tuple[Histogram, ...]:
        """Every histogram."""
        return (self.duration, self.ttft, self.tpot)

    def gauge(self, name: str, meaning: str, read: Gauge) -> None:
        """Register a value that is read when somebody asks."""
        self._gauges.append((name, meaning, read))

    def model(self, name: str) -> str:
        """The label of a model."""
        return name if name in self._models else OTHER_MODEL

    def like(self) -> "Metrics":
        """The same counters, all at zero, and the same gauges."""
        other = Metrics(self._models)
        other._gauges = list(self._gauges)
        return other

    def snapshot(self) -> dict[str, Any]:
        """All values, for JSON."""
        return {
            "counters": {c.name: list(c.values.items()) for c in self.counters},
            "histograms": {
                h.name: [(labels, counts, h.sums[labels]) for labels, counts in h.counts.items()]
                for h in self.histograms
            },
            "gauges": {name: list(read()) for name, _, read in self._gauges},
        }

    def add(self, snapshot: Mapping[str, Any], *, gauges: bool) -> None:
        """Add the values of a snapshot that was JSON or is fresh."""
        for counter in self.counters:
            for labels, value in snapshot.get("counters", {}).get(counter.name, ()):
                counter.values[_labels(labels)] += value
        for histogram in self.histograms:
            for labels, counts, total in snapshot.get("histograms", {}).get(histogram.name, ()):
                own = histogram.counts[_labels(labels)]
                own[:] = [a + b for a, b in zip(own, counts, strict=True)]
                histogram.sums[_labels(labels)] += total
        for name, values in snapshot.get("gauges", {}).items() if gauges else ():
            for labels, value in values:
                self._added[name][_labels(labels)] += value

    def text(self) -> str:
        """All of it in the Prometheus text format (version 0.0.4)."""
        lines: list[str] = []
        for counter in self.counters:
            lines += counter.lines()
        for histogram in self.histograms:
            lines += histogram.lines()
        for name, meaning, read in self._gauges:
            lines += _head(name, meaning, "gauge")
            values = self._added[name].copy()
            for labels, value in read():
                values[labels] += value
            lines += (f"{name}{{{_spelled(labels)}}} {value:g}" for labels, value in values.items())
        return "\n".join(lines) + "\n"


def _labels(given: Iterable[str]) -> Labels:
    lane, target, model, status = given
    return lane, target, model, status


def _head(name: str, meaning: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"


def _spelled(labels: Labels) -> str:
    return ",".join(f'{k}="{_escaped(v)}"' for k, v in zip(LABELS, labels, strict=True))


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
