"""The queue server loses everything: batches go on where they were, and the bill is whole."""

import json
import logging
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.answers import Pace
from tests.support.batch import BatchClient, chat_line, ids, usage_of
from tests.support.loss import flush_all
from tests.support.meter import delivered
from tests.support.serve import RunningHeadway, headway, headway_command, one_target, wait_for
from tests.support.upstream import ScriptedUpstream

log = logging.getLogger(__name__)

_WINDOW = 16
#: What a dispatcher may hold: its window, the reserve behind it, and results on their way.
_HELD = _WINDOW + _WINDOW // 4 + _WINDOW


def _lines(rows: int) -> list[dict[str, Any]]:
    return [chat_line(str(n), f"row {n}", max_tokens=1 + n % 3) for n in range(rows)]


def _ran_again(upstream: ScriptedUpstream) -> int:
    """Calls beyond the first of each row."""
    calls = Counter(call.json["messages"][0]["content"] for call in upstream.calls("row "))
    return calls.total() - len(calls)


def _whole(client: BatchClient, batch: dict[str, Any], rows: int) -> tuple[int, int]:
    """Each id exactly once; the tokens of the output."""
    assert batch["status"] == "completed"
    assert batch["request_counts"] == {"total": rows, "completed": rows, "failed": 0}
    output = client.output(batch)
    assert ids(output) == sorted(map(str, range(rows)))
    usage = usage_of(output)
    assert (batch["usage"]["input_tokens"], batch["usage"]["output_tokens"]) == usage
    return usage


def _bill_is(running: RunningHeadway, *usages: tuple[int, int]) -> None:
    wanted = tuple(map(sum, zip(*usages, strict=True)))
    wait_for(lambda: delivered(running) == wanted, 10, f"a bill of {wanted}")


@pytest.mark.parametrize("rows", [1000, pytest.param(5000, marks=pytest.mark.long)])
def test_flushall_in_the_middle_of_a_batch(
    tmp_path: Path,
    upstream: ScriptedUpstream,
    rows: int,
) -> None:
    """It completes by itself; at most the rows in flight run again; other usage is whole, too."""
    upstream.pace = Pace(first=0.02)
    with headway(tmp_path, one_target(upstream.url, window=_WINDOW)) as running:
        client = BatchClient(running)
        earlier = client.ended(client.start(_lines(20))["id"])
        first = _whole(client, earlier, 20)
        with running.client() as http:
            chat = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
            spent = http.post("/chat/completions", json=chat).json()["usage"]
        wait_for(lambda: _interactive(running) == spent["total_tokens"], 10, "the chat's record")
        upstream.clear()
        batch_id = client.start(_lines(rows))["id"]
        wait_for(lambda: client.done(batch_id) >= rows // 3, 60)
        flush_all(running)
        flushed = time.monotonic()
        wait_for(lambda: client.done(batch_id) >= rows // 3, 20, "the repair")
        repaired = time.monotonic() - flushed
        batch = client.ended(batch_id, 120)
        second = _whole(client, batch, rows)
        again = _ran_again(upstream)
        log.info("%d rows ran again; repaired after %.1f s", again, repaired)
        assert again <= _HELD
        _bill_is(running, first, second)
        wait_for(lambda: _interactive(running) == spent["total_tokens"], 10, "the chat's record")
        assert client.get(earlier["id"]) == earlier
        assert not _audit(running)


@pytest.mark.long
def test_flushall_again_during_the_repair(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """Five losses within two seconds: the last repair is whole."""
    upstream.pace = Pace(first=0.02)
    with headway(tmp_path, one_target(upstream.url, window=_WINDOW)) as running:
        client = BatchClient(running)
        batch_id = client.start(_lines(500))["id"]
        wait_for(lambda: client.done(batch_id) >= 200, 60)
        for _ in range(5):
            flush_all(running)
            time.sleep(0.4)
        usage = _whole(client, client.ended(batch_id, 60), 500)
        assert _ran_again(upstream) <= 5 * _HELD
        _bill_is(running, usage)


@pytest.mark.parametrize(
    "order", ["kill first", pytest.param("flush first", marks=pytest.mark.long)]
)
def test_flushall_and_a_killed_dispatcher(
    tmp_path: Path,
    upstream: ScriptedUpstream,
    order: str,
) -> None:
    """Nobody is left who knows what was leased: the part files do."""
    upstream.pace = Pace(first=0.2)
    with headway(tmp_path, one_target(upstream.url, window=_WINDOW)) as running:
        client = BatchClient(running)
        batch_id = client.start(_lines(500))["id"]
        wait_for(lambda: client.done(batch_id) >= 200, 60)
        if order == "flush first":
            flush_all(running)
        os.kill(running.child("dispatch"), signal.SIGKILL)
        if order == "kill first":
            flush_all(running)
        usage = _whole(client, client.ended(batch_id, 100), 500)
        again = _ran_again(upstream)
        log.info("%d rows ran again", again)
        assert again <= _HELD
        _bill_is(running, usage)


def test_flushall_during_a_cancel(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """Results so far stay and are billed; the rest is cancelled and never runs."""
    upstream.pace = Pace(first=0.3)
    with headway(tmp_path, one_target(upstream.url, window=_WINDOW)) as running:
        client = BatchClient(running)
        batch_id = client.start(_lines(400))["id"]
        wait_for(lambda: client.done(batch_id) >= 100, 60)
        assert client.cancel(batch_id)["status"] == "cancelling"
        flush_all(running)
        seen = len(upstream.calls())
        batch = client.ended(batch_id, 60)
        assert batch["status"] == "cancelled"
        output, errors = client.output(batch), client.errors(batch)
        assert len(output) >= 100
        assert len(output) <= seen + _HELD
        assert errors
        assert ids([*output, *errors]) == sorted(map(str, range(400)))
        assert {line["error"]["code"] for line in errors} == {"batch_cancelled"}
        assert _ran_again(upstream) == 0
        _bill_is(running, usage_of(output))


def _interactive(running: RunningHeadway) -> int:
    answer = headway_command(["usage", "--json", "--data-dir", str(running.data_dir)])
    lane = json.loads(answer.stdout)["lanes"]["interactive"]
    return int(lane["prompt_tokens"] + lane["completion_tokens"])


def _audit(running: RunningHeadway) -> str:
    answer = headway_command(["queue", "audit", "--data-dir", str(running.data_dir)])
    return "" if answer.returncode == 0 else answer.stdout
