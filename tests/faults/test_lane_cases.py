"""Both lanes at once on one upstream."""

import itertools
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.support.answers import Pace
from tests.support.batch import BatchClient, chat_line
from tests.support.jobs import JobClient
from tests.support.serve import RunningHeadway, headway, one_target, wait_for
from tests.support.upstream import ScriptedUpstream

_CALLS = 20


def test_que_12_interactive_stays_fast(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """Scaled to a tenth in time: 400 offline rows on 8 places, of which the batch lane has 6."""
    upstream.limit(8)
    upstream.pace = Pace(first=0.1, token=0.025)
    with headway(tmp_path, one_target(upstream.url, window=6)) as running:
        alone = _first_tokens(running)
        client = BatchClient(running)
        batch_id = client.start(chat_line(str(n), f"row {n}") for n in range(400))["id"]
        upstream.wait(lambda: upstream.running >= 6, 10)
        assert any(_first_tokens(running) <= 1.5 * alone + 0.05 for _ in range(3))
        assert client.get(batch_id)["status"] == "in_progress"
        client.cancel(batch_id)


def test_que_13_offline_is_not_starved(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """Scaled to a thirtieth: with 8 of 10 slots always interactive, a share of 10 % is had.

    The share is the batch lane's place; the oldest row's age stays bounded, as rows go in order.
    """
    upstream.limit(10)
    upstream.pace = Pace(first=0.8, token=0.025)
    seconds = 10.0
    with headway(tmp_path, one_target(upstream.url, window=1)) as running:
        client = BatchClient(running)
        ended = threading.Event()
        callers = [threading.Thread(target=_keep_calling, args=(running, ended)) for _ in range(8)]
        batch_id = client.start(chat_line(str(n), f"row {n}") for n in range(400))["id"]
        upstream.wait(upstream.calls, 30)
        for caller in callers:
            caller.start()
        started = time.monotonic()
        time.sleep(seconds)
        until = time.monotonic()
        ended.set()
        for caller in callers:
            caller.join()
        client.cancel(batch_id)
    calls = [call for call in upstream.calls("row ") if call.at < until]
    kept = [call for call in calls if call.completed_at or (call.peer_closed_at or until) >= until]
    spans = [(max(call.at, started), min(call.completed_at or until, until)) for call in kept]
    assert sum(end - at for at, end in spans if end > at) >= 0.08 * 10 * seconds
    starts = [call.at for call in kept if call.at >= started]
    assert max(b - a for a, b in itertools.pairwise(starts)) < 3.0


def test_que_15_fair_between_tenants(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """With 1000 rows of another tenant waiting for 4 places, a single row is done within 1 s."""
    upstream.pace = Pace(first=0.1)
    keys = {name: {"tenant": name, "key": f"hw-key-of-{name}"} for name in "ab"}
    with headway(tmp_path, {**one_target(upstream.url, window=4), "keys": keys}) as running:
        many = BatchClient(replace(running, key="hw-key-of-a"))
        batch_id = many.start(chat_line(str(n), f"many {n}") for n in range(1000))["id"]
        wait_for(lambda: many.done(batch_id) >= 40, 20)
        waits = []
        for number in range(3):
            started = time.monotonic()
            JobClient(replace(running, key="hw-key-of-b")).start(f"single {number}")
            upstream.wait(partial(_answered, upstream, f"single {number}"), 5)
            waits.append(time.monotonic() - started)
        assert min(waits) < 1.0
        assert many.get(batch_id)["status"] == "in_progress"
        assert many.done(batch_id) < 900
        many.cancel(batch_id)


def _answered(upstream: ScriptedUpstream, text: str) -> bool:
    return any(call.completed for call in upstream.calls(text))


def _keep_calling(running: RunningHeadway, ended: threading.Event) -> None:
    body = {"model": "m", "max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]}
    with running.client() as client:
        while not ended.is_set():
            client.post("/chat/completions", json=body).raise_for_status()


def _first_tokens(running: RunningHeadway) -> float:
    """The 95th percentile of the time to the first content, in seconds."""
    body = {
        "model": "m",
        "stream": True,
        "max_tokens": 2,
        "messages": [{"role": "user", "content": "hi"}],
    }
    found = []
    with running.client() as client:
        for _ in range(_CALLS):
            started = time.monotonic()
            with client.stream("POST", "/chat/completions", json=body) as answer:
                for line in answer.iter_lines():
                    if '"content"' in line:
                        found.append(time.monotonic() - started)
                        break
            time.sleep(0.1)
    return sorted(found)[int(0.95 * _CALLS) - 1]
