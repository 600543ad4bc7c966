"""The targets as all processes see them, put together for an operator."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

from gateway.bootstrap.store_url import store_url
from gateway.core.clock import SystemClock
from gateway.core.settings import Settings
from gateway.dispatch.load import SILENCE_SECONDS
from gateway.store.client import StoreClient, connect
from gateway.store.load import LoadChannel
from gateway.store.reports import TargetReports

Report = Mapping[str, Any]


async def targets_page(settings: Settings) -> list[dict[str, Any]]:
    """One entry a target, from what was told within the last 15 s.

    A gateway that is not heard for a second counts no more, as it does not for the pacing of rows.
    """
    client = connect(store_url(settings))
    try:
        told = await TargetReports(client, SystemClock()).fresh()
        alive = await _heard(client, {name for name, role, _ in told if role == "gateway"})
        return merged([(role, t) for name, role, t in told if role != "gateway" or name in alive])
    finally:
        await client.aclose()


async def _heard(client: StoreClient, gateways: set[str]) -> set[str]:
    """Those of ``gateways`` that say something now; a second is waited for the silent."""
    heard: set[str] = set()
    if not gateways:
        return heard
    with suppress(TimeoutError):
        async with asyncio.timeout(SILENCE_SECONDS), aclosing(LoadChannel(client).listen()) as said:
            async for word in said:
                heard.add(word.gateway)
                if gateways <= heard:
                    break
    return heard


def merged(reports: Sequence[tuple[str, Report]]) -> list[dict[str, Any]]:
    """Calls and rows are added up; of caps and step times the one from most samples counts."""
    names = {name: None for _, targets in reports for name in targets}
    return [
        _target(
            name,
            [targets[name] for role, targets in reports if role == "gateway" and name in targets],
            [targets[name] for role, targets in reports if role != "gateway" and name in targets],
        )
        for name in names
    ]


def _target(name: str, gateways: Sequence[Report], dispatchers: Sequence[Report]) -> dict[str, Any]:
    best = max(dispatchers, key=_samples, default=None)
    engines = [g["engine"] for g in gateways if g["engine"] is not None]
    return {
        "target": name,
        "state": _state(gateways, dispatchers),
        "gateways": len(gateways),
        "dispatchers": len(dispatchers),
        "lanes": _lanes(gateways, dispatchers),
        "caps": None if best is None else {k: v for k, v in best["caps"].items() if k != "ours"},
        "engine_says": engines[0] if engines else None,
        "advice": None if best is None else best.get("engine"),
        "late_cost": None if best is None else best.get("late_cost"),
    }


def _samples(report: Report) -> int:
    return int((report.get("engine") or {}).get("samples", 0))


def _state(gateways: Iterable[Report], dispatchers: Iterable[Report]) -> str:
    """In words, the worst that any process sees."""
    closed = max((g["closed_s"] for g in gateways), default=0.0)
    if not all(g["healthy"] for g in gateways):
        return "unhealthy"
    if any(g["breaker_open"] for g in gateways):
        return f"left out for {closed:g} s"
    if closed:
        return f"left alone for {closed:g} s"
    return "ok" if all(d["works"] for d in dispatchers) else "fails batch rows"


def _lanes(gateways: Iterable[Report], dispatchers: Sequence[Report]) -> dict[str, dict[str, int]]:
    lanes: dict[str, dict[str, int]] = {}
    for gateway in gateways:
        for lane, counts in gateway["lanes"].items():
            sums = lanes.setdefault(lane, {"running": 0, "waiting": 0})
            for name, count in counts.items():
                sums[name] += count
    if dispatchers:
        lanes["batch"] = {
            "running": sum(d["rows"] for d in dispatchers),
            "prefilling": sum(d["prefilling"] for d in dispatchers),
        }
    return lanes
