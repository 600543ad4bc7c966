"""The Jobs API as a client sees it."""

from typing import Any

import orjson
import pytest

from gateway.store.job_commands import JobCommands
from gateway.store.jobs import LISTING
from gateway.store.keys import shard_of
from tests.support.batch_plane import HOUR, BatchPlane, job_body
from tests.support.contract import checked


async def test_create_and_retrieve(plane: BatchPlane) -> None:
    """202 with Location, and the same object there."""
    answer = await plane.a.post(
        "/v1/jobs", json=job_body(deadline="2h", priority=3, metadata={"k": "v"})
    )
    job = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    assert (job["object"], job["status"], job["model"]) == ("job", "queued", "m")
    assert job["expires_at"] - job["created_at"] in {7200, 7201}
    assert (job["priority"], job["metadata"], job["result_url"]) == (3, {"k": "v"}, None)
    assert await plane.get_job(job["id"]) == job


async def test_the_result(plane: BatchPlane) -> None:
    """409 that may be tried again until it is there, then status and body of the call."""
    job_id = (await plane.job("hello"))["id"]
    waiting = await plane.a.get(f"/v1/jobs/{job_id}/result")
    assert waiting.status_code == 409
    assert checked(waiting.json(), "error")["error"]["code"] == "job_not_finished"
    assert (waiting.headers["retry-after"], waiting.headers["x-should-retry"]) == ("1", "true")
    await plane.run(9)
    assert (await plane.get_job(job_id))["status"] == "in_progress"
    await plane.finish()
    job = await plane.get_job(job_id)
    assert job["status"] == "completed"
    result = await plane.a.get(job["result_url"])
    assert result.status_code == 200
    assert result.headers["content-type"] == "application/json"
    assert result.json()["said"]["messages"] == [{"role": "user", "content": "hello"}]


async def test_the_result_of_a_refused_call(plane: BatchPlane) -> None:
    """The target's status and error; the job is failed and says why."""
    job_id = (await plane.job())["id"]
    await plane.run(9, lambda row: False)
    await plane.finish()
    assert (await plane.get_job(job_id))["status"] == "failed"
    result = await plane.a.get(f"/v1/jobs/{job_id}/result")
    assert (result.status_code, result.headers["x-should-retry"]) == (400, "false")
    assert checked(result.json(), "error")["error"]["message"] == "<p>no</p>"


async def test_cancel(plane: BatchPlane) -> None:
    """Cancelled at once, again and again; nothing runs and the result is a final 409."""
    job_id = (await plane.job())["id"]
    for _ in range(2):
        answer = await plane.a.post(f"/v1/jobs/{job_id}/cancel")
        assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert await plane.run(9) == 0
    await plane.finish()
    job = await plane.get_job(job_id)
    assert (job["status"], job["error"]["code"]) == ("cancelled", "job_cancelled")
    result = await plane.a.get(f"/v1/jobs/{job_id}/result")
    assert (result.status_code, result.headers["x-should-retry"]) == (409, "false")
    assert result.json()["error"]["code"] == "job_cancelled"


async def test_cancel_after_the_end(plane: BatchPlane) -> None:
    """409 that is not tried again."""
    job_id = (await plane.job())["id"]
    await plane.run(9)
    await plane.finish()
    answer = await plane.a.post(f"/v1/jobs/{job_id}/cancel")
    assert (answer.status_code, answer.headers["x-should-retry"]) == (409, "false")
    assert answer.json()["error"]["code"] == "job_not_cancellable"


async def test_delete(plane: BatchPlane) -> None:
    """Only after the end; then it is gone, with its result and its key in the queue, and billed."""
    repairs = JobCommands(plane.store, LISTING)
    await repairs.end_epoch(await repairs.begin_epoch())
    job_id = (await plane.job())["id"]
    assert (await plane.a.delete(f"/v1/jobs/{job_id}")).json()["error"]["code"] == (
        "job_not_finished"
    )
    await plane.run(9)
    await plane.finish()
    gone = (await plane.a.delete(f"/v1/jobs/{job_id}")).json()
    assert gone == {"id": job_id, "object": "job", "deleted": True}
    for path in ("", "/result"):
        assert (await plane.a.get(f"/v1/jobs/{job_id}{path}")).status_code == 404
    assert (await plane.a.get("/v1/jobs")).json()["data"] == []
    keys = await plane.store.execute_command("KEYS", "*")
    assert not [key for key in keys if job_id.encode() in key]
    meter = await plane.queue.meter(shard_of("m"), "a", [HOUR])
    assert meter["m"]["requests"] == 1


async def test_delete_before_the_segment_is_finished(plane: BatchPlane) -> None:
    """A job that was cancelled may be deleted at once: its segment ends by itself."""
    job_id = (await plane.job())["id"]
    assert await plane.run(9, commit=False) == 1
    assert (await plane.a.post(f"/v1/jobs/{job_id}/cancel")).status_code == 200
    assert (await plane.a.delete(f"/v1/jobs/{job_id}")).json()["deleted"] is True
    assert (await plane.a.get(f"/v1/jobs/{job_id}")).status_code == 404


async def test_list_over_three_pages(plane: BatchPlane) -> None:
    """Newest first; after is a job id; batches are not among them."""
    await plane.create(await plane.upload(b""))
    made = [(await plane.job())["id"] for _ in range(5)]
    seen: list[str] = []
    page: dict[str, Any] = {"has_more": True}
    while page["has_more"]:
        query = {"limit": "2"} | ({"after": seen[-1]} if seen else {})
        page = (await plane.a.get("/v1/jobs", params=query)).json()
        seen += [job["id"] for job in page["data"]]
    assert seen == sorted(made, reverse=True)
    assert len((await plane.a.get("/v1/batches")).json()["data"]) == 1
    assert (await plane.a.get("/v1/jobs", params={"limit": "101"})).status_code == 400


async def test_foreign_jobs(plane: BatchPlane) -> None:
    """Another tenant neither sees, reads, cancels nor deletes."""
    job_id = (await plane.job())["id"]
    await plane.run(9)
    await plane.finish()
    calls = (("GET", ""), ("GET", "/result"), ("POST", "/cancel"), ("DELETE", ""))
    for method, path in calls:
        answer = await plane.b.request(method, f"/v1/jobs/{job_id}{path}")
        assert answer.status_code == 404
        checked(answer.json(), "error")
    assert (await plane.b.get("/v1/jobs")).json()["data"] == []


async def test_models(plane: BatchPlane) -> None:
    """404 as for the call itself: unknown, or not for this key."""
    call = {**job_body()["body"], "model": "unknown"}
    answers = [
        await plane.a.post("/v1/jobs", json=job_body() | {"body": call}),
        await plane.b.post("/v1/jobs", json=job_body()),
    ]
    for answer in answers:
        assert answer.status_code == 404
        assert checked(answer.json(), "error")["error"]["code"] == "model_not_found"
    assert await plane.run(9) == 0


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"endpoint":"/v1/completions"}'])
async def test_faulty_bodies(plane: BatchPlane, content: bytes) -> None:
    """400 in the error shape."""
    answer = await plane.a.post("/v1/jobs", content=content)
    assert answer.status_code == 400
    checked(answer.json(), "error")


async def test_a_body_that_is_too_large(plane: BatchPlane) -> None:
    """413 before it is read."""
    assert (await plane.a.post("/v1/jobs", content=b" " * 2_000_000)).status_code == 413


async def test_idempotency_key(plane: BatchPlane) -> None:
    """The same key and request: the same job, also once it has ended; another request: 409."""
    key = {"idempotency-key": "k1"}
    first = await plane.a.post("/v1/jobs", json=job_body(), headers=key)
    again = await plane.a.post("/v1/jobs", json=job_body(), headers=key)
    assert first.json() == again.json()
    other = await plane.a.post("/v1/jobs", json=job_body(priority=1), headers=key)
    assert (other.status_code, other.headers["x-should-retry"]) == (409, "false")
    assert await plane.run(9) == 1
    await plane.finish()
    ended = await plane.a.post("/v1/jobs", json=job_body(), headers=key)
    assert (ended.status_code, ended.json()["status"]) == (202, "completed")
    long = {"idempotency-key": "k" * 256}
    assert (await plane.a.post("/v1/jobs", json=job_body(), headers=long)).status_code == 400


async def test_priority_goes_first(plane: BatchPlane) -> None:
    """Of jobs with one deadline the one of priority 9 is leased first."""
    for priority in (0, 9, 4):
        await plane.job(str(priority), priority=priority)
    order: list[str] = []

    def note(row: Any) -> bool:
        order.append(orjson.loads(row.body)["messages"][0]["content"])
        return True

    while await plane.run(1, note):
        pass
    assert order == ["9", "4", "0"]
