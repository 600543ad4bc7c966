"""Batches through a provider's own Batch API, over real processes."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.batch import BatchClient, chat_line, ids, usage_of
from tests.support.batch_provider import BatchProvider
from tests.support.meter import delivered
from tests.support.serve import headway, wait_for


@pytest.fixture
def provider() -> Iterator[BatchProvider]:
    """A running provider."""
    server = BatchProvider().start()
    yield server
    server.stop()


def test_a_killed_dispatcher_hands_nothing_in_twice(
    tmp_path: Path, provider: BatchProvider
) -> None:
    """Killed while the provider works: the successor collects its batch, once, and meters it."""
    provider.hold = True
    target = {
        "base_url": provider.url,
        "models": {"m": "their-m"},
        "batch_api": {"collect": "300ms", "poll": "200ms"},
    }
    with headway(tmp_path, {"targets": {"p": target}}) as running:
        client = BatchClient(running)
        lines = [chat_line(str(n), f"row {n}") for n in range(300)]
        batch_id = client.start(lines)["id"]
        wait_for(lambda: sum(1 for _ in provider.requests()) >= 64, 20, "rows at the provider")
        os.kill(running.child("dispatch"), signal.SIGKILL)
        provider.hold = False
        batch = client.ended(batch_id, 60)
        output = client.output(batch)
        assert batch["status"] == "completed"
        assert ids(output) == sorted(line["custom_id"] for line in lines)
        for line in output:
            [choice] = line["response"]["body"]["choices"]
            assert choice["message"]["content"] == f"row {line['custom_id']}"
        asked = [row["body"]["messages"][-1]["content"] for row in provider.requests()]
        assert sorted(asked) == sorted(f"row {n}" for n in range(300))
        assert delivered(running) == usage_of(output)


def test_a_cancel_reaches_the_provider(tmp_path: Path, provider: BatchProvider) -> None:
    """A cancelled batch ends at once here, and its batch there is told to stop."""
    provider.hold = True
    target = {
        "base_url": provider.url,
        "models": ["m"],
        "batch_api": {"collect": "200ms", "poll": "200ms"},
    }
    with headway(tmp_path, {"targets": {"p": target}}) as running:
        client = BatchClient(running)
        batch_id = client.start(chat_line(str(n), f"row {n}") for n in range(20))["id"]
        wait_for(lambda: provider.batches, 20, "a batch at the provider")
        client.cancel(batch_id)
        batch = client.ended(batch_id, 20)
        assert batch["status"] == "cancelled"
        assert batch["request_counts"] == {"completed": 0, "failed": 20, "total": 20}
        wait_for(
            lambda: all(b["status"] == "cancelled" for b in provider.batches.values()),
            20,
            "its end",
        )
