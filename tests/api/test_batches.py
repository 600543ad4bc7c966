"""The Batches API as a client sees it."""

from typing import Any

import orjson
import pytest

from gateway.store.keys import shard_of
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane
from tests.support.contract import checked


async def _post(plane: BatchPlane, headers: dict[str, str] | None = None, **members: Any) -> Any:
    body = {"endpoint": "/v1/chat/completions", "completion_window": "24h", **members}
    return await plane.a.post("/v1/batches", json=body, headers=headers)


async def test_create_and_retrieve(plane: BatchPlane) -> None:
    """200 and validating at once, all members there, expires_at from the window."""
    file_id = await plane.upload(b"")
    batch = await plane.create(file_id, metadata={"k": "v"}, completion_window="2h")
    assert batch["status"] == "validating"
    assert batch["expires_at"] == batch["created_at"] + 7200
    assert (batch["metadata"], batch["input_file_id"]) == ({"k": "v"}, file_id)
    assert batch["errors"] is batch["output_file_id"] is None
    assert await plane.get(batch["id"]) == batch


async def test_unknown_file(plane: BatchPlane) -> None:
    """An input that is not there is refused at once."""
    for file_id in ("file-" + "0" * 24, "../x"):
        answer = await _post(plane, input_file_id=file_id)
        assert answer.status_code == 404
        assert checked(answer.json(), "error")["error"]["param"] == "input_file_id"


async def test_wrong_purpose(plane: BatchPlane) -> None:
    """BAT-12: 400 naming input_file_id."""
    answer = await _post(plane, input_file_id=await plane.upload(b"x", "user_data"))
    assert answer.status_code == 400
    assert checked(answer.json(), "error")["error"]["param"] == "input_file_id"


async def test_foreign_objects(plane: BatchPlane) -> None:
    """SEC-13, SEC-14: another tenant neither sees, cancels, nor uses what is not its own."""
    batch_id = await plane.start(chat_line("1", "x"))
    await plane.run(1)
    await plane.finish()
    batch = await plane.get(batch_id)
    for method, path in (("GET", ""), ("POST", "/cancel")):
        answer = await plane.b.request(method, f"/v1/batches/{batch_id}{path}")
        assert answer.status_code == 404
    assert (await plane.b.get("/v1/batches")).json()["data"] == []
    for file_id in (batch["input_file_id"], batch["output_file_id"]):
        body = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
        answer = await plane.b.post("/v1/batches", json={**body, "input_file_id": file_id})
        assert answer.status_code == 404
    assert not await plane.intake.step()


async def test_list_over_three_pages(plane: BatchPlane) -> None:
    """Newest first; after is a batch id."""
    file_id = await plane.upload(b"")
    made = [(await plane.create(file_id))["id"] for _ in range(5)]
    seen: list[str] = []
    page: dict[str, Any] = {"has_more": True}
    while page["has_more"]:
        query = {"limit": "2"} | ({"after": seen[-1]} if seen else {})
        answer = await plane.a.get("/v1/batches", params=query)
        page = checked(answer.json(), "batch_list")
        seen += [batch["id"] for batch in page["data"]]
    assert seen == sorted(made, reverse=True)
    refused = await plane.a.get("/v1/batches", params={"limit": "101"})
    assert refused.json()["error"]["code"] == "integer_above_max_value"


async def test_faulty_bodies(plane: BatchPlane) -> None:
    """400 in the error shape, and 413 for a body that is no create request."""
    answer = await plane.a.post("/v1/batches", content=b"{")
    assert answer.status_code == 400
    checked(answer.json(), "error")
    answer = await plane.a.post("/v1/batches", content=b" " * 2_000_000)
    assert answer.status_code == 413


async def test_idempotency_key(plane: BatchPlane) -> None:
    """The same key and request: the same batch; another request: 409 that is not retried."""
    file_id = await plane.upload(orjson.dumps(chat_line("1", "x")))
    key = {"idempotency-key": "k1"}
    first = await _post(plane, key, input_file_id=file_id)
    again = await _post(plane, key, input_file_id=file_id)
    assert first.json() == again.json()
    other = await _post(plane, key, input_file_id=file_id, metadata={"a": "b"})
    assert (other.status_code, other.headers["x-should-retry"]) == (409, "false")
    assert len((await plane.a.get("/v1/batches")).json()["data"]) == 1
    await plane.a.delete(f"/v1/files/{file_id}")
    assert (await _post(plane, key, input_file_id=file_id)).json() == first.json()


async def test_cancel_before_it_runs(plane: BatchPlane) -> None:
    """Cancelling at once, 200 again and again, cancelled by the dispatcher, nothing enqueued."""
    batch = await plane.create(await plane.upload(orjson.dumps(chat_line("1", "x"))))
    path = f"/v1/batches/{batch['id']}/cancel"
    for _ in range(2):
        answer = await plane.a.post(path)
        assert answer.status_code == 200
        assert checked(answer.json(), "batch")["status"] == "cancelling"
    await plane.intake.step()
    assert (await plane.get(batch["id"]))["status"] == "cancelled"
    assert (await plane.a.post(path)).json()["status"] == "cancelled"
    assert await plane.run(1) == 0


@pytest.mark.parametrize("good", [True, False])
async def test_cancel_after_the_end(plane: BatchPlane, good: bool) -> None:
    """409 with x-should-retry: false on a completed and on a failed batch."""
    batch_id = await plane.start(chat_line("1", "x", model="m" if good else "unknown"))
    await plane.run(1)
    await plane.finish()
    assert (await plane.get(batch_id))["status"] == ("completed" if good else "failed")
    answer = await plane.a.post(f"/v1/batches/{batch_id}/cancel")
    assert (answer.status_code, answer.headers["x-should-retry"]) == (409, "false")
    checked(answer.json(), "error")


async def test_live_counts(plane: BatchPlane) -> None:
    """request_counts and usage follow the rows while the batch runs."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(5)))
    batch = await plane.get(batch_id)
    assert batch["status"] == "in_progress"
    assert batch["request_counts"] == {"total": 5, "completed": 0, "failed": 0}
    assert batch["model"] == "m"
    await plane.run(3, lambda row: row.custom_id != "0")
    batch = await plane.get(batch_id)
    assert batch["request_counts"] == {"total": 5, "completed": 2, "failed": 1}
    assert batch["usage"]["total_tokens"] == 24


async def test_the_input_may_be_deleted_while_the_batch_runs(plane: BatchPlane) -> None:
    """BAT-24: 200, the batch completes, results are downloadable."""
    batch_id = await plane.start(chat_line("1", "x"), chat_line("2", "x"))
    await plane.run(1)
    file_id = (await plane.get(batch_id))["input_file_id"]
    assert (await plane.a.delete(f"/v1/files/{file_id}")).status_code == 200
    await plane.run(1)
    await plane.finish()
    batch = await plane.get(batch_id)
    assert batch["status"] == "completed"
    assert len(await plane.lines(batch["output_file_id"])) == 2


async def test_a_key_may_not_use_every_model(plane: BatchPlane) -> None:
    """A model the key may not use is as unknown as one that is not there."""
    upload = await plane.b.post(
        "/v1/files",
        files={"file": ("x.jsonl", orjson.dumps(chat_line("1", "x")))},
        data={"purpose": "batch"},
    )
    body = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
    created = await plane.b.post("/v1/batches", json={**body, "input_file_id": upload.json()["id"]})
    await plane.intake.step()
    batch = checked((await plane.b.get(f"/v1/batches/{created.json()['id']}")).json(), "batch")
    assert batch["status"] == "failed"
    assert batch["errors"]["data"][0]["code"] == "model_not_found"
    assert await plane.queue.segment(shard_of("m"), f"{batch['id']}.0") is None
