"""Commits that travel together."""

import asyncio
from collections.abc import Sequence

import pytest

from gateway.core.errors import StoreUnavailable
from gateway.core.work import Committed, RunOutcomes
from gateway.dispatch.commits import Commits
from gateway.store.client import StoreClient
from gateway.store.keys import shard_key
from gateway.store.queue import QueueClient
from tests.support.segments import HOUR, SHARD, outcome, segment


async def _filled(store: StoreClient, segments: int) -> tuple[QueueClient, list[RunOutcomes]]:
    queue = QueueClient(store)
    for number in range(segments):
        await queue.enqueue(SHARD, segment(f"s{number}.0", 1))
    lease = await queue.lease(SHARD, "w", segments, 10**9, 60_000)
    assert lease is not None
    return queue, [RunOutcomes(lease.id, f"s{n}.0", [outcome(0)]) for n in range(segments)]


def _steps(queue: QueueClient, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The runs of each step that the queue is asked for, from now on."""
    seen: list[int] = []
    shipped = queue.commit_all

    async def noted(shard: str, runs: Sequence[RunOutcomes], hour: str) -> list[Committed | None]:
        seen.append(len(runs))
        return await shipped(shard, runs, hour)

    monkeypatch.setattr(queue, "commit_all", noted)
    return seen


async def test_what_waits_goes_together(
    store: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty at once are one step, and each hears what became of it."""
    queue, runs = await _filled(store, 20)
    steps = _steps(queue, monkeypatch)
    commits = Commits(queue)
    answers = await asyncio.gather(*(commits.send(SHARD, run, HOUR) for run in runs))
    assert answers == [Committed(1, 0, 0)] * 20
    assert steps == [20]
    assert (await queue.meter(SHARD, "t", [HOUR]))["m"]["requests"] == 20


async def test_one_that_fails_fails_alone(store: StoreClient) -> None:
    """A segment that is broken in the queue, or a row it has not, is no fault of the others."""
    queue, runs = await _filled(store, 4)
    await store.execute_command("SET", shard_key(SHARD, "s:s1.0"), "x")
    runs[2] = RunOutcomes("", "s2.0", [outcome(7)])
    commits = Commits(queue)
    sent = (commits.send(SHARD, run, HOUR) for run in runs)
    answers = await asyncio.gather(*sent, return_exceptions=True)
    assert isinstance(answers[1], Exception)
    assert isinstance(answers[2], ValueError)
    assert (answers[0], answers[3]) == (Committed(1, 0, 0), Committed(1, 0, 0))
    assert (await queue.meter(SHARD, "t", [HOUR]))["m"]["requests"] == 2


async def test_an_outage_is_told_to_all(
    store: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for ever; the next try works."""
    queue, runs = await _filled(store, 3)
    shipped, down = queue.commit_all, [True]

    async def failing(shard: str, runs: Sequence[RunOutcomes], hour: str) -> list[Committed | None]:
        if down:
            raise StoreUnavailable("The queue does not answer.")
        return await shipped(shard, runs, hour)

    monkeypatch.setattr(queue, "commit_all", failing)
    commits = Commits(queue)
    sent = (commits.send(SHARD, run, HOUR) for run in runs)
    answers = await asyncio.gather(*sent, return_exceptions=True)
    assert all(isinstance(answer, StoreUnavailable) for answer in answers)
    down.clear()
    assert (await commits.send(SHARD, runs[0], HOUR)).fresh == 1
