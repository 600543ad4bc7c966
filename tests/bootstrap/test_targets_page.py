"""The page of targets, from what each process tells."""

import asyncio
import time
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from gateway.bootstrap.gateway import build_gateway
from gateway.bootstrap.targets_page import merged, targets_page
from gateway.core.clock import SystemClock
from gateway.core.settings import Settings
from gateway.policy.model import Policy
from gateway.store.client import StoreClient
from gateway.store.reports import TargetReports
from tests.support.heartbeat import heartbeat
from tests.support.serve import one_target

CAPS = {"rows": 40, "ours": 20, "prompts": 1, "ttft": 0.2, "gap": 0.03}


def _gateway(**changes: Any) -> tuple[str, dict[str, Any]]:
    lanes = {"interactive": {"running": 2, "waiting": 1}}
    calm = {"healthy": True, "breaker_open": False, "closed_s": 0.0, "engine": None}
    return "gateway", {"up": {**calm, "lanes": lanes, **changes}}


def _dispatcher(**changes: Any) -> tuple[str, dict[str, Any]]:
    found = {"rows": 7, "prefilling": 1, "works": True, "admits": True, "caps": CAPS}
    return "dispatcher", {"up": {**found, **changes}}


def test_calls_and_rows_are_added_up() -> None:
    """Caps are those of the target, whoever tells them; the best founded advice counts."""
    engine = {"running": 9, "waiting": 0, "kv_use": 0.5}
    (page,) = merged(
        [
            _dispatcher(engine={"samples": 30}),
            _dispatcher(engine={"samples": 90}),
            _dispatcher(engine=None),
            _gateway(),
            _gateway(engine=engine),
        ]
    )
    assert page == {
        "target": "up",
        "state": "ok",
        "gateways": 2,
        "dispatchers": 3,
        "lanes": {
            "interactive": {"running": 4, "waiting": 2},
            "batch": {"running": 21, "prefilling": 3},
        },
        "caps": {"rows": 40, "prompts": 1, "ttft": 0.2, "gap": 0.03},
        "engine_says": engine,
        "advice": {"samples": 90},
        "late_cost": None,
    }


def test_the_worst_that_anybody_sees_is_the_state() -> None:
    """In words."""
    cases = [
        (_gateway(healthy=False), "unhealthy"),
        (_gateway(breaker_open=True, closed_s=2.5), "left out for 2.5 s"),
        (_gateway(closed_s=9.0), "left alone for 9 s"),
        (_dispatcher(works=False), "fails batch rows"),
    ]
    for report, state in cases:
        assert merged([_gateway(), _dispatcher(), report])[0]["state"] == state


def test_a_target_of_one_kind_of_process_is_shown_too() -> None:
    """One that takes no batch rows, and one whose gateways are all gone."""
    (page,) = merged([_gateway()])
    assert (page["caps"], page["advice"], page["dispatchers"]) == (None, None, 0)
    (page,) = merged([_dispatcher()])
    assert page["lanes"] == {"batch": {"running": 7, "prefilling": 1}}
    assert merged([]) == []


async def test_calls_of_a_gateway_that_is_gone_are_not_shown(
    store: StoreClient, store_url: str
) -> None:
    """Once it is silent for a second; those that speak are not waited for, dispatchers stay."""
    reports, settings = (
        TargetReports(store, SystemClock()),
        Settings(redis_url=SecretStr(store_url)),
    )
    for name, (role, told) in {"g1": _gateway(), "g2": _gateway(), "d": _dispatcher()}.items():
        await reports.put(name, role, told)
    async with heartbeat(store, "g1", "g2"):
        begun = time.monotonic()
        (page,) = await targets_page(settings)
        assert time.monotonic() - begun < 0.9
    assert (page["gateways"], page["lanes"]["interactive"]["running"]) == (2, 4)
    async with heartbeat(store, "g1"):
        (page,) = await targets_page(settings)
    assert (page["gateways"], page["lanes"]["interactive"]["running"]) == (1, 2)
    (page,) = await targets_page(settings)
    assert (page["gateways"], page["dispatchers"]) == (0, 1)
    assert "interactive" not in page["lanes"]


async def test_a_gateway_that_runs_is_heard_by_the_name_it_reports_with(
    tmp_path: Path, store_url: str
) -> None:
    """So it is on the page; when it has stopped, it is not."""
    policy = Policy.model_validate(one_target("http://127.0.0.1:9/v1"))
    settings = Settings(data_dir=tmp_path, redis_url=SecretStr(store_url))
    gateway = await build_gateway(settings, policy, store_url, "hw-k", SystemClock())
    async with asyncio.timeout(10):
        while not (page := await targets_page(settings)):  # noqa: ASYNC110 - a state elsewhere
            await asyncio.sleep(0.05)
    assert page[0]["gateways"] == 1
    await gateway.aclose()
    assert await targets_page(settings) == []
