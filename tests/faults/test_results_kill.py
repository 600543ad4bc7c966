"""A reader of results that is killed and resumed, while everything else is killed, too."""

import json
import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.answers import Pace
from tests.support.batch import BatchClient, chat_line, ids
from tests.support.loss import flush_all
from tests.support.serve import RunningHeadway, headway, one_target
from tests.support.upstream import ScriptedUpstream

_ROWS = 150
_ENV = {"HEADWAY_LEASE_SECONDS": "1"}


class _Reader:
    """Follows one batch over many connections; each is cut after a random number of lines."""

    def __init__(self, running: RunningHeadway, batch_id: str, chance: random.Random) -> None:
        self.lines: list[dict[str, Any]] = []
        self.cuts = 0
        self._running = running
        self._path = f"/batches/{batch_id}/results"
        self._chance = chance
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def end(self, timeout: float) -> None:
        """Wait until the stream ended cleanly."""
        self._thread.join(timeout)
        assert not self._thread.is_alive()

    def _follow(self) -> None:
        while True:
            try:
                if self._read(self._chance.randint(1, 12)):
                    return
            except (httpx.HTTPError, OSError):
                time.sleep(0.05)

    def _read(self, most: int) -> bool:
        """Read some lines; True when the stream ended by itself."""
        after = self.lines[-1]["headway_cursor"] if self.lines else ""
        query = {"after": after, "follow": "1"}
        with self._running.client() as client, client.stream("GET", self._path, params=query) as a:
            a.raise_for_status()
            for line in a.iter_lines():
                if line:
                    self.lines.append(json.loads(line))
                    most -= 1
                if not most:
                    self.cuts += 1
                    return False
        return True


def test_a_total_loss_of_the_queue(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """FLUSHALL under a reader, twice: the batch completes and the reader has every row once."""
    upstream.pace = Pace(first=0.02, token=0.01)
    with headway(tmp_path, one_target(upstream.url, window=8), _ENV) as running:
        client = BatchClient(running)
        lines = [chat_line(str(n), f"row {n}") for n in range(_ROWS)]
        batch_id = client.start(lines)["id"]
        reader = _Reader(running, batch_id, random.Random(7))
        for _ in range(2):
            seen = len(reader.lines)
            _until(lambda seen=seen: len(reader.lines) >= seen + 30)
            flush_all(running)
        batch = client.ended(batch_id, 60)
        reader.end(20)
        assert batch["status"] == "completed"
        assert ids(reader.lines) == sorted(line["custom_id"] for line in lines)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_no_gap_and_no_repeat(tmp_path: Path, upstream: ScriptedUpstream, seed: int) -> None:
    """Every row once, in spite of kills of dispatchers, the queue's server and the gateway."""
    chance = random.Random(seed)
    upstream.pace = Pace(first=0.02, token=0.01)
    with headway(tmp_path, one_target(upstream.url, window=8), _ENV) as running:
        client = BatchClient(running)
        lines = [
            chat_line(str(n), f"row {n}", max_tokens=chance.randint(2, 8)) for n in range(_ROWS)
        ]
        batch_id = client.start(lines)["id"]
        reader = _Reader(running, batch_id, chance)
        for victim in ("dispatch", "queue", "dispatch", "gateway", "dispatch"):
            seen = len(reader.lines)
            _until(lambda seen=seen: len(reader.lines) >= seen + 12)
            if victim == "gateway":
                running.kill()
                running.start_again()
            else:
                os.kill(running.child(victim), signal.SIGKILL)
        batch = client.ended(batch_id, 60)
        reader.end(20)
        assert batch["status"] == "completed"
        assert ids(reader.lines) == sorted(line["custom_id"] for line in lines)
        assert reader.cuts >= 5
        sent = {line["custom_id"]: line for line in reader.lines}
        for line in client.output(batch):
            assert sent[line["custom_id"]]["response"] == line["response"]


def _until(happened: Any, timeout: float = 30.0) -> None:
    end = time.monotonic() + timeout
    while not happened():
        assert time.monotonic() < end, "the reader got no further"
        time.sleep(0.02)
