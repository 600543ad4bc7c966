"""Batch clients that others wrote, unmodified, by base URL and key alone."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clients import run_client
from tests.support.scripts import answer
from tests.support.serve import RunningHeadway, headway, one_target
from tests.support.upstream import ScriptedUpstream

AUTOBATCHER = """
import asyncio, json, os
from autobatcher import BatchOpenAI

events = []

async def main():
    async with BatchOpenAI(
        base_url=os.environ["OPENAI_BASE_URL"],
        api_key=os.environ["OPENAI_API_KEY"],
        completion_window="24h",
        batch_window_seconds=0.3,
        poll_interval_seconds=0.2,
        batch_metadata={"by": "autobatcher"},
        batch_event_handler=lambda event: events.append(event["event"]),
    ) as client:
        chats = [
            client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": f"say {n}."}], max_tokens=4
            )
            for n in range(20)
        ]
        *answers, vector = await asyncio.gather(
            *chats, client.embeddings.create(model="m", input="some text"), return_exceptions=True
        )
        batches = [batch async for batch in client.batches.list(limit=1)]
    said = [a.choices[0].message.content if hasattr(a, "choices") else "failed" for a in answers]
    print(json.dumps({
        "said": said,
        "floats": len(vector.data[0].embedding),
        "batches": [[b.endpoint, b.metadata, b.status] for b in batches],
        "completed": events.count("batch_completed"),
    }))

asyncio.run(main())
"""

INSTRUCTOR = """
import json, time
from instructor.batch import BatchProcessor
from pydantic import BaseModel

class Number(BaseModel):
    number: int

processor = BatchProcessor("openai/m", Number)
messages = [[{"role": "user", "content": f"say {n}."}] for n in range(6)]
buffer = processor.create_batch_from_messages(messages, max_tokens=8)
batch_id = processor.submit_batch(buffer, metadata={"by": "instructor"})
while (status := processor.get_batch_status(batch_id))["status"] != "completed":
    assert status["status"] in ("validating", "in_progress", "finalizing"), status
    time.sleep(0.2)
results = processor.get_results(batch_id, "results.jsonl")
listed = processor.list_batches(limit=5)
other = processor.submit_batch(processor.create_batch_from_messages(messages))
try:
    cancelled = processor.cancel_batch(other)["status"]
except Exception as error:  # it may have ended before
    cancelled = "completed" if "completed cannot be cancelled" in str(error) else str(error)
print(json.dumps({
    "numbers": {r.custom_id: r.result.number for r in results if r.success},
    "counts": status["request_counts"],
    "saved": len(open("results.jsonl").read().splitlines()),
    "listed": [[job.id == batch_id, job.status.value, job.metadata] for job in listed],
    "cancelled": cancelled,
}))
"""


@pytest.fixture
def running(tmp_path: Path, upstream: ScriptedUpstream) -> Iterator[RunningHeadway]:
    """A gateway whose upstream says the number it was asked for, as JSON."""
    for number in range(20):
        message = {"role": "assistant", "content": json.dumps({"number": number})}
        body = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        upstream.on(f"say {number}.", answer(body))
    with headway(tmp_path, one_target(upstream.url)) as process:
        yield process


@pytest.mark.timeout(240)
def test_autobatcher(running: RunningHeadway, upstream: ScriptedUpstream, tmp_path: Path) -> None:
    """Calls become two batches, one per endpoint; every caller gets its own answer."""
    found = run_client(AUTOBATCHER, running, tmp_path)
    assert [json.loads(text)["number"] for text in found["said"]] == list(range(20))
    assert found["floats"] > 0
    metadata = {"by": "autobatcher"}
    assert sorted(found["batches"]) == [
        ["/v1/chat/completions", metadata, "completed"],
        ["/v1/embeddings", metadata, "completed"],
    ]
    assert found["completed"] == 2
    assert len(upstream.calls("say ")) == 20


@pytest.mark.timeout(240)
def test_instructor(running: RunningHeadway, tmp_path: Path) -> None:
    """Submit from memory, poll, parse into models, save, list, cancel."""
    found = run_client(INSTRUCTOR, running, tmp_path)
    assert found["numbers"] == {f"request-{n}": n for n in range(6)}
    assert found["counts"] == {"total": 6, "completed": 6, "failed": 0}
    assert found["saved"] == 6
    assert found["listed"] == [[True, "completed", {"by": "instructor"}]]
    assert found["cancelled"] in {"cancelling", "cancelled", "completed"}
