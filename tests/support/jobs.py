"""Jobs against a running gateway, as a client sees them."""

from dataclasses import dataclass
from typing import Any

import httpx

from tests.support.gateway import chat_body
from tests.support.serve import RunningHeadway, wait_for

ENDED = {"completed", "failed", "expired", "cancelled"}


@dataclass
class JobClient:
    """Starts, follows and reads jobs."""

    running: RunningHeadway

    def start(self, text: str, **members: Any) -> dict[str, Any]:
        """A job for a chat call that says ``text``."""
        body = {"endpoint": "/v1/chat/completions", "body": chat_body(text, max_tokens=4)}
        return self._call("POST", "/jobs", json={**body, **members})

    def get(self, job_id: str) -> dict[str, Any]:
        return self._call("GET", f"/jobs/{job_id}")

    def result(self, job_id: str) -> dict[str, Any]:
        return self._call("GET", f"/jobs/{job_id}/result")

    def ended(self, job_id: str, timeout: float = 30.0) -> dict[str, Any]:
        """The job once it is terminal, however often the gateway is away meanwhile."""

        def look() -> dict[str, Any] | None:
            try:
                job = self.get(job_id)
            except (httpx.TransportError, httpx.HTTPStatusError):
                return None
            return job if job["status"] in ENDED else None

        found: dict[str, Any] = wait_for(look, timeout, f"the end of {job_id}")
        return found

    def _call(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        headers = {"authorization": f"Bearer {self.running.key}"}
        url = self.running.base_url + path
        # certificates that nobody asks for take longer to load than a call takes
        answer = httpx.request(method, url, headers=headers, timeout=30, verify=False, **content)
        answer.raise_for_status()
        body: dict[str, Any] = answer.json()
        return body
