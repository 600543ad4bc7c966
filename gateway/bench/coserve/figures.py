"""One run in figures, and several runs of an arm with their spread."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from gateway.bench.coserve.record import CallRecord, Record
from gateway.bench.coserve.slo import USUAL, Slo
from gateway.bench.timing import percentile

_START_SECONDS = 10.0
# Work of a token out over one of a token in, as tenants are charged for it.
_OUTPUT_WEIGHT = 2


@dataclass(frozen=True, slots=True)
class Span:
    """What of a run is measured: calls that came from ``start`` to ``last``, tokens to ``end``.

    The offline work begins at ``start``; the time before it is the same in all arms.
    """

    start: float
    last: float
    end: float

    def judged(self, calls: Sequence[CallRecord]) -> list[CallRecord]:
        """Those of ``calls`` that count."""
        return [call for call in calls if self.start <= call.at < self.last]


@dataclass(frozen=True, slots=True)
class Figures:
    """An arm. Times in milliseconds; tokens of offline rows in and out a second.

    ``failed`` of its ``calls`` did; ``slo`` is the share of them that got what is promised, 500 ms
    and gaps of 50 ms unless the scene says otherwise;
    ``job_start`` the worst first token of the ten seconds in which offline work begins; ``harvest``
    the share taken of what the engines can do beside the interactive calls; ``interference`` the
    99th percentile of the first token over the one alone. Costs are per million tokens, the
    engines' price shared out by work: a token out counts as two in. What an arm does not have, or
    needs another arm for that did not run, is not a number.
    """

    calls: float
    ttft_p50: float
    ttft_p95: float
    ttft_p99: float
    itl_p50: float
    itl_p99: float
    slo: float
    job_start: float
    interactive_tokens: float
    offline_tokens: float
    offline_output: float
    utilisation: float
    cost_interactive: float
    cost_offline: float
    taken_back: float
    preemptions: float
    failed: float
    harvest: float = math.nan
    interference: float = math.nan

    @classmethod
    def of(
        cls, record: Record, span: Span, *, price: float, work: float, slo: Slo = USUAL
    ) -> "Figures":
        """``price`` is that of all engines per hour, ``work`` the share of time spent on tokens."""
        calls = span.judged(record.calls)
        waits = [(call.at, min(call.first, span.end) - call.at) for call in calls]
        ttft = sorted(wait for _, wait in waits)
        gaps = sorted(record.gaps)
        early = [wait for at, wait in waits if at < span.start + _START_SECONDS]
        seconds = span.end - span.start
        spoken = [call for call in record.calls if call.tokens]
        weighed = _weight(sum(c.prompt for c in spoken), sum(c.tokens for c in spoken))
        # Of calls before the start the tokens count as much as those after it: the rate is even.
        interactive = sum(c.prompt + c.tokens for c in spoken) / span.end
        offline = (record.prompt_tokens + record.output_tokens) / seconds
        offline_weight = _weight(record.prompt_tokens, record.output_tokens) / seconds
        total = weighed / span.end + offline_weight
        return cls(
            calls=len(calls),
            ttft_p50=1000 * percentile(ttft, 50),
            ttft_p95=1000 * percentile(ttft, 95),
            ttft_p99=1000 * percentile(ttft, 99),
            itl_p50=1000 * percentile(gaps, 50),
            itl_p99=1000 * percentile(gaps, 99),
            slo=sum(map(slo.met, calls)) / len(calls) if calls else math.nan,
            job_start=1000 * max(early, default=math.nan),
            interactive_tokens=interactive,
            offline_tokens=offline,
            offline_output=record.output_tokens / seconds,
            utilisation=work,
            cost_interactive=_cost(price, weighed / span.end, total, interactive),
            cost_offline=_cost(price, offline_weight, total, offline),
            taken_back=record.taken_back,
            preemptions=record.preemptions,
            failed=sum(call.failed for call in calls),
        )

    def beside(self, alone: "Figures | None", offline_alone: "Figures | None") -> "Figures":
        """With the figures that compare it with the arms that ran alone."""
        values = asdict(self)
        if alone is not None and self.calls:
            values["interference"] = ratio(self.ttft_p99, alone.ttft_p99)
        if offline_alone is not None and self.offline_tokens:
            left = offline_alone.offline_tokens - self.interactive_tokens
            values["harvest"] = self.offline_tokens / left if left > 0 else math.nan
        return Figures(**values)


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over the slices."""

    mean: float
    low: float
    high: float


def spread(slices: Sequence[Figures]) -> dict[str, Spread]:
    """Each figure's mean, least and most."""
    found = {}
    for field in fields(Figures):
        values = [getattr(figures, field.name) for figures in slices]
        found[field.name] = Spread(sum(values) / len(values), min(values), max(values))
    return found


def ratio(one: float, other: float) -> float:
    """``one / other``; not a number where there is nothing of the other."""
    return one / other if other else math.nan


def _weight(prompt: float, output: float) -> float:
    return prompt + _OUTPUT_WEIGHT * output


def _cost(price: float, weight: float, total: float, tokens: float) -> float:
    if not tokens or not total:
        return math.nan
    return price / 3600 * weight / total / tokens * 1e6
