"""Batches against a running gateway, as a client sees them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from tests.support.serve import RunningHeadway, wait_for

ENDED = {"completed", "failed", "expired", "cancelled"}


def chat_line(custom_id: str, text: str, *, model: str = "m", **members: Any) -> dict[str, Any]:
    """One input line: a chat call that says ``text``."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 4,
        **members,
    }
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


@dataclass
class BatchClient:
    """Uploads, starts, follows and reads batches."""

    running: RunningHeadway

    def start(self, lines: Iterable[Mapping[str, Any]], **members: Any) -> dict[str, Any]:
        """Upload ``lines`` and create a batch over them."""
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        file_id = self.upload(data)["id"]
        wanted = {
            "input_file_id": file_id,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            **members,
        }
        return self._call("POST", "/batches", json=wanted)

    def upload(self, data: bytes, purpose: str = "batch") -> dict[str, Any]:
        form = {"file": ("input.jsonl", data, "application/jsonl")}
        return self._call("POST", "/files", files=form, data={"purpose": purpose})

    def get(self, batch_id: str) -> dict[str, Any]:
        return self._call("GET", f"/batches/{batch_id}")

    def cancel(self, batch_id: str) -> dict[str, Any]:
        return self._call("POST", f"/batches/{batch_id}/cancel")

    def done(self, batch_id: str) -> int:
        """Rows with a result so far; -1 while the gateway does not answer."""
        try:
            counts = self.get(batch_id)["request_counts"]
        except (httpx.TransportError, httpx.HTTPStatusError):
            return -1
        return int(counts["completed"] + counts["failed"])

    def ended(self, batch_id: str, timeout: float = 30.0) -> dict[str, Any]:
        """The batch once it is terminal, however often the gateway is away meanwhile."""

        def look() -> dict[str, Any] | None:
            try:
                batch = self.get(batch_id)
            except (httpx.TransportError, httpx.HTTPStatusError):
                return None
            return batch if batch["status"] in ENDED else None

        found: dict[str, Any] = wait_for(look, timeout, f"the end of {batch_id}")
        return found

    def output(self, batch: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The lines of the output file."""
        return self._lines(batch["output_file_id"])

    def errors(self, batch: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The lines of the error file."""
        return self._lines(batch["error_file_id"])

    def _lines(self, file_id: str | None) -> list[dict[str, Any]]:
        if file_id is None:
            return []
        with self.running.client() as client:
            answer = client.get(f"/files/{file_id}/content")
            answer.raise_for_status()
        return [json.loads(line) for line in answer.content.split(b"\n") if line]

    def _call(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        with self.running.client() as client:
            answer = client.request(method, path, **content)
        answer.raise_for_status()
        body: dict[str, Any] = answer.json()
        return body


def ids(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """Custom ids, sorted."""
    return sorted(line["custom_id"] for line in lines)


def usage_of(lines: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Prompt and completion tokens over the answers in output lines."""
    usages = [line["response"]["body"]["usage"] for line in lines]
    return (
        sum(usage["prompt_tokens"] for usage in usages),
        sum(usage["completion_tokens"] for usage in usages),
    )
