"""The bill: what each tenant used per lane and model.

Of the interactive and elastic lanes the shipped records count. Of the batch lane the queue's
meter counts: a row is delivered once and billed once. What records say beyond that was computed
twice (a target died, a dispatcher died): it is waste, shown and not billed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from gateway.core.lanes import Lane
from gateway.core.usage import Usage
from gateway.metering.record import CallStatus
from gateway.store.usage import TotalsRow

_Group = tuple[str, str, str]
_EVERY = "*"
_NOTHING = Usage()


class Totals(Protocol):
    """Shipped records; see ``gateway.store.usage.UsageTotals``."""

    async def tenants(self) -> list[str]:
        """Tenants that have records."""

    async def rows(self, tenant: str, hours: Iterable[str]) -> list[TotalsRow]:
        """Sums of these hours."""


class Delivered(Protocol):
    """The queue's meter; see ``gateway.store.queue.QueueClient``."""

    async def shards(self) -> list[str]:
        """Every shard."""

    async def tenants_of(self, shard: str) -> list[str]:
        """Tenants that had batches there."""

    async def meter(
        self, shard: str, tenant: str, hours: Sequence[str]
    ) -> Mapping[str, Mapping[str, int]]:
        """Model → requests, failed, prompt, completion, cached, reasoning."""


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One line of the bill.

    ``failed`` of ``requests`` did not end well; the usage of ``estimated`` of them was counted by
    us. ``wasted`` tokens were computed and not delivered; they are not part of ``usage``.
    """

    lane: str
    model: str
    tenant: str
    requests: int = 0
    failed: int = 0
    estimated: int = 0
    usage: Usage = _NOTHING
    wasted: Usage = _NOTHING

    @property
    def estimated_share(self) -> float:
        """Share of requests whose usage is an estimate, 0 to 1."""
        return self.estimated / self.requests if self.requests else 0.0

    def __add__(self, other: "UsageRow") -> "UsageRow":
        return replace(
            self,
            requests=self.requests + other.requests,
            failed=self.failed + other.failed,
            estimated=self.estimated + other.estimated,
            usage=self.usage + other.usage,
            wasted=self.wasted + other.wasted,
        )

    def to_json(self) -> dict[str, Any]:
        """Flat and JSON-ready."""
        return {
            "lane": self.lane,
            "model": self.model,
            "tenant": self.tenant,
            "requests": self.requests,
            "failed": self.failed,
            "estimated": self.estimated,
            "estimated_share": round(self.estimated_share, 4),
            "prompt_tokens": self.usage.prompt,
            "completion_tokens": self.usage.completion,
            "cached_tokens": self.usage.cached,
            "reasoning_tokens": self.usage.reasoning,
            "wasted_prompt_tokens": self.wasted.prompt,
            "wasted_completion_tokens": self.wasted.completion,
        }


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Rows by lane, model and tenant, and their sums per lane."""

    hours: tuple[str, ...]
    rows: tuple[UsageRow, ...]

    def lane(self, lane: Lane) -> UsageRow:
        """The sum over models and tenants."""
        own = (row for row in self.rows if row.lane == lane)
        return sum(own, UsageRow(lane.value, _EVERY, _EVERY))

    def to_json(self) -> dict[str, Any]:
        """What ``headway usage --json`` prints."""
        return {
            "from": self.hours[0] if self.hours else None,
            "to": self.hours[-1] if self.hours else None,
            "rows": [row.to_json() for row in self.rows],
            "lanes": {lane.value: self.lane(lane).to_json() for lane in Lane},
        }


async def usage_report(
    totals: Totals, queue: Delivered, hours: Sequence[str], tenant: str | None = None
) -> UsageReport:
    """The bill of ``hours``, of all tenants or one. Raises StoreUnavailable."""
    shards = await queue.shards()
    tenants = [tenant] if tenant else await _tenants(totals, queue, shards)
    rows: list[UsageRow] = []
    for name in tenants:
        recorded = _by_group(await totals.rows(name, hours))
        delivered: dict[_Group, UsageRow] = {}
        for shard in shards:
            for model, figures in (await queue.meter(shard, name, hours)).items():
                group = (Lane.BATCH.value, model, name)
                fresh = _delivered(group, figures)
                delivered[group] = delivered.get(group, UsageRow(*group)) + fresh
        rows += _bill(recorded, delivered)
    order = [lane.value for lane in Lane]
    rows.sort(key=lambda row: (order.index(row.lane), row.model, row.tenant))
    return UsageReport(tuple(hours), tuple(rows))


async def _tenants(totals: Totals, queue: Delivered, shards: Sequence[str]) -> list[str]:
    """Who has records or batches: a delivered row is billed before its record is shipped."""
    names = set(await totals.tenants())
    for shard in shards:
        names.update(await queue.tenants_of(shard))
    return sorted(names)


def _by_group(rows: Iterable[TotalsRow]) -> dict[_Group, UsageRow]:
    groups: dict[_Group, UsageRow] = {}
    for row in rows:
        group = (row.lane, row.model, row.tenant)
        failed = 0 if row.status == CallStatus.OK else row.requests
        usage = Usage(row.prompt, row.completion, row.cached, row.reasoning, bool(row.estimated))
        fresh = UsageRow(*group, row.requests, failed, row.estimated, usage)
        groups[group] = groups.get(group, UsageRow(*group)) + fresh
    return groups


def _delivered(group: _Group, figures: Mapping[str, int]) -> UsageRow:
    prompt, completion = figures.get("prompt", 0), figures.get("completion", 0)
    usage = Usage(prompt, completion, figures.get("cached", 0), figures.get("reasoning", 0))
    return UsageRow(*group, figures.get("requests", 0), figures.get("failed", 0), usage=usage)


def _bill(
    recorded: Mapping[_Group, UsageRow], delivered: Mapping[_Group, UsageRow]
) -> Iterable[UsageRow]:
    for group in {**recorded, **delivered}:
        computed = recorded.get(group, UsageRow(*group))
        if group[0] != Lane.BATCH:
            yield computed
            continue
        billed = delivered.get(group, UsageRow(*group))
        # Records arrive a little later than deliveries: a difference below zero is none yet.
        wasted = Usage(
            max(0, computed.usage.prompt - billed.usage.prompt),
            max(0, computed.usage.completion - billed.usage.completion),
        )
        estimated = min(computed.estimated, billed.requests)
        usage = replace(billed.usage, estimated=estimated > 0)
        yield replace(billed, estimated=estimated, usage=usage, wasted=wasted)
