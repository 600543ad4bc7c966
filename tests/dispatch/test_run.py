"""Every attempt leaves one record."""

import json
from collections import Counter
from pathlib import Path

from gateway.core.errors import UpstreamFailed
from gateway.core.usage import ReportedUsage, Usage
from gateway.providers.broken_answers import TOO_DEEP, unreadable_answer
from gateway.store.client import StoreClient
from tests.support.rig import JOB, Rig


async def test_each_attempt_is_recorded_with_its_job(tmp_path: Path, store: StoreClient) -> None:
    """One record for the failure and one for the answer, lane batch."""
    tries = 0

    async def play(number: int) -> Usage:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise UpstreamFailed("broken", target="up", status=500)
        return Usage(5, 7)

    rig = Rig(tmp_path, store, play)
    await rig.add(1)
    async with rig.running():
        await rig.until_done(1)
    lines = [json.loads(line) for line in rig.journal.path.read_text().splitlines()]
    records = [line for line in lines if "close" in line]
    assert [record["status"] for record in records] == ["failed", "ok"]
    assert {record["lane"] for record in records} == {"batch"}
    assert {record["job"] for record in records} == {JOB}
    assert records[1]["completion"] == 7


async def test_an_answer_that_cannot_be_used_is_asked_for_twice(
    tmp_path: Path, store: StoreClient
) -> None:
    """What the target would answer again and again is no reason to use up every try."""

    async def play(number: int) -> Usage:
        if number == 0:
            raise UpstreamFailed("nested too deeply", target="up", code=TOO_DEEP)
        return Usage(5, 7)

    rig = Rig(tmp_path, store, play)
    await rig.add(2)
    async with rig.running():
        view = await rig.until_done(2)
    assert (view.ok, view.bad) == (1, 1)
    assert sorted(rig.target.calls) == [0, 0, 1]
    assert rig.gate.healthy


async def test_answers_that_cannot_be_read_cost_tries(tmp_path: Path, store: StoreClient) -> None:
    """The target did the work each time: five such rows are no outage that charges nothing."""

    async def play(number: int) -> Usage:
        if number < 5:
            raise unreadable_answer(b'{"choices":[NaN]}', "up")
        return Usage(5, 7)

    rig = Rig(tmp_path, store, play)
    await rig.add(6)
    async with rig.running():
        view = await rig.until_done(6)
    assert (view.ok, view.bad) == (1, 5)
    sent = Counter(rig.target.calls)
    assert [sent[number] for number in range(6)] == [3] * 5 + [1]
    assert rig.retry.max_tries == 3
    assert rig.gate.healthy


async def test_what_a_target_does_not_count_is_estimated(
    tmp_path: Path, store: StoreClient
) -> None:
    """A row whose report lacks the prompt is billed for an estimate of it, and says so."""

    async def play(number: int) -> ReportedUsage:
        del number
        return ReportedUsage(None, 7)

    rig = Rig(tmp_path, store, play)
    await rig.add(1)
    async with rig.running():
        view = await rig.until_done(1)
    lines = [json.loads(line) for line in rig.journal.path.read_text().splitlines()]
    (record,) = [line for line in lines if "close" in line]
    assert record["prompt"] > 0
    assert (record["completion"], record["estimated"]) == (7, True)
    assert (view.usage.prompt, view.usage.completion) == (record["prompt"], 7)
