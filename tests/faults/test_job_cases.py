"""Cases of jobs against real processes."""

import os
import signal
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support.jobs import JobClient
from tests.support.machine import slowness
from tests.support.meter import delivered
from tests.support.scripts import never
from tests.support.serve import COMMAND, headway, headway_command, one_target, wait_for
from tests.support.upstream import ScriptedUpstream

#: A gateway that is killed where a job is on disk and not in the queue yet.
_DIES_BEFORE_ENQUEUE = """
import os, signal
from gateway.store.queue import QueueClient
async def enqueue_all(*given):
    os.kill(os.getpid(), signal.SIGKILL)
QueueClient.enqueue_all = enqueue_all
from gateway.cli.main import main
main()
"""


@pytest.mark.parametrize(
    ("seconds", "late"), [(4.0, 2.0), pytest.param(20.0, 3.0, marks=pytest.mark.long)]
)
def test_que_06_a_delayed_job(
    tmp_path: Path, upstream: ScriptedUpstream, seconds: float, late: float
) -> None:
    """It runs once, not before its time and soon after it."""
    env = {"HEADWAY_LEASE_SECONDS": "5"} if seconds > 5 else {}
    with headway(tmp_path, one_target(upstream.url), env) as running:
        client = JobClient(running)
        client.ended(client.start("warm up")["id"])
        started = time.monotonic()
        job = client.start("later", not_before=seconds)
        assert job["status"] == "queued"
        upstream.wait(lambda: upstream.calls("later"), seconds + late)
        assert seconds <= time.monotonic() - started <= seconds + late
        assert client.ended(job["id"])["status"] == "completed"
        time.sleep(seconds / 2)
        assert len(upstream.calls("later")) == 1


@pytest.mark.parametrize(("deadline", "pause"), [(3, 5.0), (1, 2.0)])
def test_que_07_the_deadline_passes_in_the_queue(
    tmp_path: Path, upstream: ScriptedUpstream, deadline: int, pause: float
) -> None:
    """With the dispatcher paused for 5 s, ten jobs of 3 s all end unrun, and say why."""
    with headway(tmp_path, one_target(upstream.url)) as running:
        client = JobClient(running)
        client.ended(client.start("warm up")["id"])
        upstream.clear()
        dispatcher = psutil.Process(running.child("dispatch"))
        dispatcher.suspend()
        ids = [client.start(f"job {n}", deadline=deadline)["id"] for n in range(10)]
        time.sleep(pause)
        dispatcher.resume()
        for job_id in ids:
            job = client.ended(job_id)
            assert job["status"] == "expired", job
            assert job["error"]["code"] == "deadline_exceeded"
        assert not upstream.calls()


def test_the_deadline_passes_in_the_call(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """The call is aborted, and the job says that it was running."""
    upstream.on("long", never())
    with headway(tmp_path, one_target(upstream.url)) as running:
        client = JobClient(running)
        client.ended(client.start("warm up")["id"])
        job = client.ended(client.start("long", deadline=3)["id"])
        assert (job["status"], job["error"]["code"]) == ("expired", "deadline_exceeded")
        assert "was running" in job["error"]["message"]
        assert len(upstream.calls("long")) == 1


@pytest.mark.parametrize("pause", [3.0, pytest.param(60.0, marks=pytest.mark.long)])
def test_que_10_done_stays_done(tmp_path: Path, upstream: ScriptedUpstream, pause: float) -> None:
    """Fifty finished jobs are the same after a while and a restart, and ran once."""
    with headway(tmp_path, one_target(upstream.url), {"HEADWAY_LEASE_SECONDS": "1"}) as running:
        client = JobClient(running)
        ids = [client.start(f"job {n}")["id"] for n in range(50)]
        before = [(client.ended(job_id), client.result(job_id)) for job_id in ids]
        assert {job["status"] for job, _ in before} == {"completed"}
        time.sleep(pause)
        running.kill()
        running.start_again()
        running.child("dispatch")
        time.sleep(1.0)
        assert [(client.get(job_id), client.result(job_id)) for job_id in ids] == before
        assert len(upstream.calls()) == 50
        tokens = [job["usage"] for job, _ in before]
        assert delivered(running) == (
            sum(usage["prompt_tokens"] for usage in tokens),
            sum(usage["completion_tokens"] for usage in tokens),
        )


def test_a_gateway_killed_between_disk_and_queue(
    tmp_path: Path, upstream: ScriptedUpstream
) -> None:
    """The job that nobody was told of runs all the same, once, and is there after a restart."""
    command = (sys.executable, "-c", _DIES_BEFORE_ENQUEUE)
    with headway(tmp_path, one_target(upstream.url), command=command) as running:
        client = JobClient(running)
        with pytest.raises(httpx.TransportError):
            client.start("orphan")
        running.process.wait()
        wait_for(lambda: not _alive(running.data_dir), 15, "the end of its children")
        assert not upstream.calls()
        running.arguments[: len(command)] = COMMAND
        running.start_again()
        upstream.wait(upstream.calls, 10)
        with running.client() as http:
            [job] = http.get("/jobs").json()["data"]
        assert client.ended(job["id"])["status"] == "completed"
        assert len(upstream.calls()) == 1


@pytest.mark.parametrize("victim", ["dispatch", "queue", "gateway"])
def test_a_killed_process_loses_no_job(
    tmp_path: Path, upstream: ScriptedUpstream, victim: str
) -> None:
    """Accepted jobs complete, each with its own answer, and the meter is what was delivered."""
    upstream.pace.first = 0.05
    with headway(tmp_path, one_target(upstream.url), {"HEADWAY_LEASE_SECONDS": "1"}) as running:
        client = JobClient(running)
        ids = [client.start(f"job {n}")["id"] for n in range(40)]
        upstream.wait(lambda: len(upstream.calls()) >= 5, 10)
        if victim == "gateway":
            running.kill()
            running.start_again()
        else:
            os.kill(running.child(victim), signal.SIGKILL)
        jobs = [client.ended(job_id, 40) for job_id in ids]
        assert {job["status"] for job in jobs} == {"completed"}
        assert delivered(running) == (
            sum(job["usage"]["prompt_tokens"] for job in jobs),
            sum(job["usage"]["completion_tokens"] for job in jobs),
        )
        audit = headway_command(["queue", "audit", "--data-dir", str(running.data_dir)])
        assert audit.returncode == 0, audit.stdout


def test_a_finished_job_answers_at_once(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """From the end of the upstream's answer to the result: less than 300 ms, in the median 100."""
    with headway(tmp_path, one_target(upstream.url)) as running, running.client() as http:
        client = JobClient(running)
        client.ended(client.start("warm up")["id"])
        waits = []
        for n in range(20):
            job_id = client.start(f"job {n}")["id"]
            upstream.wait(lambda n=n: len(upstream.calls(f"job {n}")) == 1, 5)  # type: ignore[misc]  # bound now
            answered = time.monotonic()
            while http.get(f"/jobs/{job_id}/result").status_code == 409:
                time.sleep(0.005)
            waits.append(time.monotonic() - answered)
        assert sorted(waits)[10] < 0.15 * slowness()
        assert max(waits) < 0.5 * slowness()


def _alive(data_dir: Path) -> list[psutil.Process]:
    """Processes that were started for ``data_dir``."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(str(data_dir) in word for word in process.info["cmdline"] or ())
    ]
