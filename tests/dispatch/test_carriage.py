"""One batch at a provider."""

import time
from typing import Any

import pytest

from gateway.dispatch.carriage import CarryRules
from tests.support.batch_provider import BatchProvider
from tests.support.carriers import carrying, number
from tests.support.rig import Rig


async def test_failed_rows_run_elsewhere(rig: Rig, provider: BatchProvider) -> None:
    """A refusal is the row's answer; what the provider could not do goes to the direct target."""

    def answer(request: dict[str, Any]) -> dict[str, Any] | None:
        n = request["body"]["n"]
        if n == 1:
            body = {"error": {"message": "no such tool", "type": "invalid_request_error"}}
            return {"response": {"status_code": 400, "request_id": "r", "body": body}}
        if n == 2:
            return {"response": {"status_code": 500, "request_id": "r", "body": {}}}
        if n == 3:
            return {"response": None, "error": {"code": "batch_expired", "message": "late"}}
        return None if n == 4 else number(request)

    provider.answer = answer
    carrying(rig, provider)
    await rig.add(10)
    async with rig.running():
        view = await rig.until_done(10)
    assert (view.ok, view.bad) == (9, 1)
    assert sorted(rig.target.calls) == [2, 3, 4]
    assert (await rig.lines())["c1"]["response"]["status_code"] == 400


@pytest.mark.parametrize("end", ["failed", "expired"])
async def test_a_batch_that_fails(rig: Rig, provider: BatchProvider, end: str) -> None:
    """What a failed or expired batch did not answer runs at the direct target."""
    provider.end_as = end
    provider.answer = lambda request: number(request) if request["body"]["n"] < 5 else None
    carrying(rig, provider)
    await rig.add(10)
    async with rig.running():
        view = await rig.until_done(10)
    assert view.ok == 10, await rig.lines()
    assert sorted(rig.target.calls) == list(range(5 if end == "expired" else 0, 10))


async def test_a_lost_answer_makes_no_second_batch(rig: Rig, provider: BatchProvider) -> None:
    """POST /batches works there but its answer never comes: the batch is found by its mark."""
    provider.lose_creates = 1
    carrying(rig, provider)
    await rig.add(10)
    async with rig.running():
        await rig.until_done(10)
    assert len(provider.batches) == 1


async def test_rows_are_taken_back_in_time(rig: Rig, provider: BatchProvider) -> None:
    """Half the slack before the deadline an unfinished batch is called back and run directly."""
    provider.hold, provider.answer = True, lambda _: None
    rules = CarryRules("24h", slack=4.0, collect=0.1, poll=0.05, rows=100, batches=2)
    carrying(rig, provider, rules)
    await rig.add(10, window_ms=5000)
    started = time.monotonic()
    async with rig.running():
        view = await rig.until_done(10)
    assert view.ok == 10
    assert time.monotonic() - started >= 2.5
    assert len(rig.target.calls) == 10
    assert provider.batches["batch_0"]["status"] == "cancelled"
