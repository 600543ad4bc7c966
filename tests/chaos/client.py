"""The client of a round: sends the batches, follows them, fetches their files.

It tries each call until it is answered, writes down what it did before and after, and keeps what
it got on disk. Nothing else is known to the checker but the log of the model server.
"""

import json
import threading
import time
from pathlib import Path
from typing import Any

import httpx

from tests.chaos.history import History
from tests.chaos.plan import TENANTS, BatchPlan, RoundPlan
from tests.chaos.plant import key_of
from tests.support.batch import ENDED, chat_line
from tests.support.serve import RunningHeadway

_POLL_SECONDS = 0.25
_RETRY_SECONDS = 0.1
_CANCEL_AFTER = 10


class Course:
    """How far one batch has come."""

    def __init__(self, plan: BatchPlan) -> None:
        self.plan = plan
        self.batch_id: str | None = None
        self.done = 0
        self.cancelling = False
        self.ended = False


class Client(threading.Thread):
    """All callers of a round, in one thread."""

    def __init__(self, gateway: RunningHeadway, plan: RoundPlan, folder: Path) -> None:
        super().__init__(daemon=True)
        self._gateway = gateway
        self._folder = folder
        self._history = History(folder / "history.jsonl")
        self._http = httpx.Client(timeout=10)
        self.courses = [Course(batch) for batch in plan.batches]
        self.enough = threading.Event()

    @property
    def finished(self) -> bool:
        """Whether every batch has ended and its files are here."""
        return all(course.ended for course in self.courses)

    def done(self) -> int:
        """Rows that have a result, as far as the client was told."""
        return sum(course.done for course in self.courses)

    def run(self) -> None:
        """Go on until everything is here or ``enough`` is set."""
        started = time.monotonic()
        while not (self.finished or self.enough.is_set()):
            for course in self.courses:
                if not course.ended and time.monotonic() - started >= course.plan.after:
                    self._step(course)
            self.enough.wait(_POLL_SECONDS)
        for tenant in TENANTS:
            self._list(tenant)
        self._http.close()
        self._history.close()

    def _step(self, course: Course) -> None:
        if course.batch_id is None:
            self._send(course)
            return
        batch = self._call(course, "poll", "GET", f"/batches/{course.batch_id}")
        if batch is None:
            return
        counts = batch["request_counts"]
        course.done = counts["completed"] + counts["failed"]
        if course.plan.cancelled and not course.cancelling and course.done >= _CANCEL_AFTER:
            course.cancelling = True
            self._call(course, "cancel", "POST", f"/batches/{course.batch_id}/cancel")
        if batch["status"] in ENDED:
            self._fetch(course, batch)

    def _send(self, course: Course) -> None:
        plan = course.plan
        lines = [
            chat_line(custom_id, f"{custom_id} please", model=model, max_tokens=tokens)
            for custom_id, model, tokens in plan.rows
        ]
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        form = {"file": ("input.jsonl", data, "application/jsonl")}
        file = self._call(course, "upload", "POST", "/files", files=form, data={"purpose": "batch"})
        if file is None:
            return
        wanted = {
            "input_file_id": file["id"],
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
        }
        while course.batch_id is None and not self.enough.is_set():
            # the same key each time: however often it is asked for, it is one batch
            key = {"idempotency-key": f"{plan.name}-{file['id']}"}
            batch = self._call(course, "create", "POST", "/batches", json=wanted, headers=key)
            if batch is not None:
                course.batch_id = batch["id"]

    def _fetch(self, course: Course, batch: dict[str, Any]) -> None:
        """Both files, each under its name; the batch is ended here when they are complete."""
        for kind in ("output", "error"):
            file_id = batch[f"{kind}_file_id"]
            if file_id is None:
                continue
            content = self._call(course, f"get {kind}", "GET", f"/files/{file_id}/content")
            if content is None:
                return
            (self._folder / f"{course.plan.name}.{kind}.jsonl").write_bytes(content)
        self._history.note("ok", "end", batch=course.plan.name, status=batch["status"])
        course.ended = True

    def _list(self, tenant: str) -> None:
        """Every batch that the gateway knows of."""
        for _ in range(50):
            answer = self._request(tenant, "GET", "/batches?limit=100")
            if answer is not None and answer.is_success:
                ids = [batch["id"] for batch in answer.json()["data"]]
                self._history.note("ok", "list", tenant=tenant, ids=ids)
                return
            time.sleep(_RETRY_SECONDS)

    def _call(self, course: Course, op: str, method: str, path: str, **content: Any) -> Any:
        """One call; None when its outcome is not known or it was refused for now."""
        name = course.plan.name
        self._history.note("invoke", op, batch=name)
        answer = self._request(course.plan.tenant, method, path, **content)
        if answer is None:
            self._history.note("unknown", op, batch=name)
        elif not answer.is_success:
            self._history.note("refused", op, batch=name, status=answer.status_code)
        else:
            value = answer.content if path.endswith("/content") else answer.json()
            found = value["id"] if isinstance(value, dict) else None
            self._history.note("ok", op, batch=name, id=found)
            return value
        time.sleep(_RETRY_SECONDS)
        return None

    def _request(
        self, tenant: str, method: str, path: str, **content: Any
    ) -> httpx.Response | None:
        headers = {"authorization": f"Bearer {key_of(tenant)}", **content.pop("headers", {})}
        try:
            url = self._gateway.base_url + path
            return self._http.request(method, url, headers=headers, **content)
        except httpx.HTTPError:
            return None
