"""A client that asks again until it is answered, and judges what it got in the end."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import SecretStr

from gateway.bootstrap.views import queue_audit, usage_of_hours
from gateway.core.settings import Settings
from tests.support.answers import digest_of
from tests.support.batch import BatchClient, ids, usage_of
from tests.support.serve import RunningHeadway, wait_for
from tests.support.upstream import ScriptedUpstream

_PATIENCE = 30.0
_PAUSE = 0.05
_AGAIN = frozenset({409, 429, 502, 503, 504})


@dataclass
class StubbornClient:
    """Retries calls that were cut or refused for now."""

    running: RunningHeadway

    def create(self, name: str, content: bytes) -> dict[str, Any]:
        """Upload and create a batch, with an idempotency key as a careful client has it."""
        form = {"file": ("input.jsonl", content, "application/jsonl")}
        file_id = self._call("POST", "/files", files=form, data={"purpose": "batch"})["id"]
        wanted = {
            "input_file_id": file_id,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {"name": name},
        }
        headers = {"idempotency-key": name}
        return self._call("POST", "/batches", json=wanted, headers=headers)

    def job(self, name: str) -> dict[str, Any]:
        """A job whose call says its name, which is its idempotency key, too."""
        call = {"model": "m", "messages": [{"role": "user", "content": name}], "max_tokens": 4}
        wanted = {"endpoint": "/v1/chat/completions", "body": call, "metadata": {"name": name}}
        return self._call("POST", "/jobs", json=wanted, headers={"idempotency-key": name})

    def cancel(self, batch_id: str) -> dict[str, Any]:
        """Cancel, again if need be."""
        return self._call("POST", f"/batches/{batch_id}/cancel")

    def list(self, path: str) -> list[dict[str, Any]]:
        """The newest hundred of a listing."""
        found: list[dict[str, Any]] = self._call("GET", path)["data"]
        return found

    def _call(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                with self.running.client() as client:
                    answer = client.request(method, path, **content)
                if answer.status_code not in _AGAIN or time.monotonic() > end:
                    answer.raise_for_status()
                    body: dict[str, Any] = answer.json()
                    return body
            except httpx.TransportError:
                assert time.monotonic() < end, f"{method} {path} is not answered"
            time.sleep(_PAUSE)


class Judge:
    """Judges one batch by the files, the upstream's log, and the bill before and after."""

    def __init__(self, running: RunningHeadway, upstream: ScriptedUpstream) -> None:
        self._running = running
        self._upstream = upstream
        self._before = bill(running)

    def accept(
        self, batch: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], *, again: int
    ) -> None:
        """Each id once, answers of this very row, the bill exact, ``again`` rows run twice."""
        client = BatchClient(self._running)
        output, errors = client.output(batch), client.errors(batch)
        assert ids([*output, *errors]) == ids(lines)
        counts = {"completed": len(output), "failed": len(errors), "total": len(lines)}
        assert batch["request_counts"] == counts
        sent = {line["custom_id"]: line["body"]["messages"] for line in lines}
        for line in output:
            said = line["response"]["body"]["choices"][0]["message"]["content"]
            assert said.split()[0] == digest_of(sent[line["custom_id"]])
        answered = Counter(call.text for call in self._upstream.calls() if call.completed)
        assert len(answered) >= len(output)
        assert sum(answered.values()) - len(answered) <= again
        wait_for(lambda: self._billed() == usage_of(output), 10, f"a bill of {usage_of(output)}")
        self._is_made_once(batch)
        assert not violations(self._running)

    def _is_made_once(self, batch: Mapping[str, Any]) -> None:
        client = StubbornClient(self._running)
        named = [b for b in client.list("/batches?limit=100") if b["metadata"] == batch["metadata"]]
        assert [b["id"] for b in named] == [batch["id"]]
        made = client.list("/files?purpose=batch_output&limit=1000")
        of_batch = [file["id"] for file in made if file["filename"].startswith(batch["id"])]
        known = {batch["output_file_id"], batch["error_file_id"]} - {None}
        assert sorted(of_batch) == sorted(known)

    def _billed(self) -> tuple[int, int]:
        now = bill(self._running)
        return now[0] - self._before[0], now[1] - self._before[1]


def bill(running: RunningHeadway) -> tuple[int, int]:
    """Prompt and completion tokens billed for batch rows, read without a process of its own."""
    report = asyncio.run(usage_of_hours(_settings(running), 24, None)).to_json()
    lane = report["lanes"]["batch"]
    return lane["prompt_tokens"], lane["completion_tokens"]


def violations(running: RunningHeadway) -> list[str]:
    """What the audit of the queue finds, read in the same way."""
    found = asyncio.run(queue_audit(_settings(running)))
    return [fault for faults in found.values() for fault in faults]


def _settings(running: RunningHeadway) -> Settings:
    url = running.env.get("HEADWAY_REDIS_URL")
    return Settings(data_dir=running.data_dir, redis_url=SecretStr(url) if url else None)
