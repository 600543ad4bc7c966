"""kill -9 between any two steps of a batch's life: nothing lost, nothing twice, the bill exact.

The process that comes to the step dies there, or it goes on and the queue's server dies.
"""

import itertools
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.answers import Pace, digest_of
from tests.support.batch import BatchClient, chat_line
from tests.support.failpoints import (
    CANCEL,
    FINISH,
    GATEWAY,
    INTAKE,
    JOB,
    REAP,
    RECONCILE,
    ROWS,
    Failpoints,
)
from tests.support.jobs import JobClient
from tests.support.loss import flush_all
from tests.support.ports import free_port
from tests.support.scripts import error
from tests.support.serve import RunningHeadway, headway, wait_for
from tests.support.stubborn import Judge, StubbornClient, bill, violations
from tests.support.upstream import ScriptedUpstream

_ROWS = 12
_WINDOW = 4
_ENV = {
    "HEADWAY_LEASE_SECONDS": "0.6",
    "HEADWAY_REAP_INTERVAL_SECONDS": "0.1",
    "PYTHONPATH": str(Path(__file__).parents[2]),
}
_NUMBER = itertools.count()
#: Steps of which a short run has enough; a full one tries all of them, with either victim.
_SHORT = {
    "uploaded, no batch yet",
    "manifest written",
    "one segment enqueued",
    "in progress",
    "leased, not called",
    "part written, not committed",
    "committed",
    "output lines written",
    "output linked, no record",
    "state final",
    "segment finished",
    "job written",
    "job's part written",
    "job's state final",
}


def _each(steps: Iterable[str]) -> list[Any]:
    """Every step with either victim."""
    found = []
    for step, victim in itertools.product(steps, ("itself", "queue")):
        marks = () if step in _SHORT and victim == "itself" else pytest.mark.long
        found.append(pytest.param(step, victim, marks=marks))
    return found


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Failpoints:
    """What is armed in the gateway of this file."""
    return Failpoints(tmp_path_factory.mktemp("points"))


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, up: ScriptedUpstream, points: Failpoints
) -> Iterator[RunningHeadway]:
    """A gateway with models m and n; what is killed of it is started again on the same port."""
    lanes = {"batch": {"max_in_flight": _WINDOW}}
    policy = {"targets": {"up": {"base_url": up.url, "models": ["m", "n"], "lanes": lanes}}}
    command = (sys.executable, "-m", "tests.support.failing", str(points.folder))
    arguments = ("--port", str(free_port()))
    with headway(tmp_path_factory.mktemp("steps"), policy, _ENV, arguments, command) as process:
        yield process


def _lines() -> list[dict[str, Any]]:
    """Rows of two models, of which one is refused, with texts that no other test has."""
    name = f"b{next(_NUMBER)}"
    return [
        chat_line(f"{name}-{n}", f"{name} row {n}{' bad' if n == 5 else ''}", model="mn"[n % 2])
        for n in range(_ROWS)
    ]


def _create(client: StubbornClient, lines: list[dict[str, Any]]) -> str:
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return str(client.create(lines[0]["custom_id"], content)["id"])


@pytest.mark.parametrize(("step", "victim"), _each([*GATEWAY, *INTAKE, *ROWS, *FINISH]))
def test_a_kill_at_a_step(
    running: RunningHeadway,
    up: ScriptedUpstream,
    points: Failpoints,
    step: str,
    victim: str,
) -> None:
    """The batch completes by itself, made once, with one pair of files."""
    up.clear()
    up.on(" bad", error(400, "no"))
    if step == "retry promoted":
        up.enqueue(error(500, "later"))
    lines = _lines()
    judge = Judge(running, up)
    points.arm(step, victim)
    batch_id = _create(StubbornClient(running), lines)
    batch = BatchClient(running).ended(batch_id, 60)
    wait_for(points.fired, 20, step)
    assert batch["status"] == "completed"
    assert batch["request_counts"] == {"completed": _ROWS - 1, "failed": 1, "total": _ROWS}
    judge.accept(batch, lines, again=2 * _WINDOW)


@pytest.mark.parametrize(("step", "victim"), _each(JOB))
def test_a_kill_in_the_life_of_a_job(
    running: RunningHeadway, up: ScriptedUpstream, points: Failpoints, step: str, victim: str
) -> None:
    """It is made once, ends completed with its own answer, and is billed once."""
    up.clear()
    name = f"job{next(_NUMBER)}"
    before = bill(running)
    points.arm(step, victim)
    client = StubbornClient(running)
    job_id = client.job(name)["id"]
    job = JobClient(running).ended(job_id, 60)
    wait_for(points.fired, 20, step)
    assert job["status"] == "completed"
    wait_for(lambda: client.list("/jobs?limit=100"), 10)
    made = [j["id"] for j in client.list("/jobs?limit=100") if j["metadata"] == {"name": name}]
    assert made == [job_id]
    answered = JobClient(running).result(job_id)
    said = answered["choices"][0]["message"]["content"].split()[0]
    assert said == digest_of([{"role": "user", "content": name}])
    used = job["usage"]["prompt_tokens"], job["usage"]["completion_tokens"]
    whole = (before[0] + used[0], before[1] + used[1])
    wait_for(lambda: bill(running) == whole, 10, f"a bill of {whole}")
    assert len(up.calls(name)) <= 2
    assert not violations(running)


@pytest.mark.parametrize(("step", "victim"), _each(CANCEL))
def test_a_kill_during_a_cancel(
    running: RunningHeadway, up: ScriptedUpstream, points: Failpoints, step: str, victim: str
) -> None:
    """Rows that were done stay and are billed, the others have their line, none runs any more."""
    up.clear()
    up.on("row 0", error(400, "no"))
    up.pace = Pace(first=0.4)
    lines = _lines()
    client = BatchClient(running)
    judge = Judge(running, up)
    try:
        batch_id = _create(StubbornClient(running), lines)
        wait_for(lambda: client.done(batch_id) >= 3, 20)
        points.arm(step, victim)
        StubbornClient(running).cancel(batch_id)
        assert points.fired()
        batch = client.ended(batch_id, 60)
    finally:
        up.pace = Pace()
    assert batch["status"] == "cancelled"
    judge.accept(batch, lines, again=_WINDOW)


@pytest.mark.parametrize(("step", "victim"), _each(REAP))
def test_a_kill_of_the_reaper(
    running: RunningHeadway, up: ScriptedUpstream, points: Failpoints, step: str, victim: str
) -> None:
    """One dispatcher dies with rows in hand, the next as it takes them back: a third has them."""
    up.clear()
    lines = _lines()
    judge = Judge(running, up)
    points.arm("leased, not called")
    batch_id = _create(StubbornClient(running), lines)
    wait_for(points.fired, 20, "the first end")
    points.arm(step, victim)
    batch = BatchClient(running).ended(batch_id, 60)
    assert points.fired()
    assert batch["request_counts"] == {"completed": _ROWS, "failed": 0, "total": _ROWS}
    judge.accept(batch, lines, again=2 * _WINDOW)


@pytest.mark.parametrize(("step", "victim"), _each(RECONCILE))
def test_a_kill_of_the_reconciler(
    running: RunningHeadway, up: ScriptedUpstream, points: Failpoints, step: str, victim: str
) -> None:
    """Redis loses everything, and who puts it back is killed at it: the next one does it all."""
    up.clear()
    up.pace = Pace(first=0.2)
    lines = _lines()
    client = BatchClient(running)
    judge = Judge(running, up)
    try:
        batch_id = _create(StubbornClient(running), lines)
        wait_for(lambda: client.done(batch_id) >= 4, 20)
        points.arm(step, victim)
        flush_all(running)
        batch = client.ended(batch_id, 60)
        wait_for(points.fired, 20, step)
    finally:
        up.pace = Pace()
    assert batch["request_counts"] == {"completed": _ROWS, "failed": 0, "total": _ROWS}
    judge.accept(batch, lines, again=3 * _WINDOW)
