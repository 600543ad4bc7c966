"""Stored responses and the jobs that make them, without HTTP and targets."""

from typing import Any

import orjson
import pytest

from gateway.batches.rows import BatchRow
from gateway.core.errors import (
    Conflict,
    ContextLengthExceeded,
    InvalidRequest,
    ModelNotFound,
    NotFound,
)
from gateway.jobs.responses import ResponseService
from gateway.responses.shape import new_response
from gateway.schemas.responses import ResponseRequest, parse_response
from gateway.store.responses import ResponseStore, new_response_id
from tests.support.batch_plane import CALLERS, BatchPlane
from tests.support.contract import checked

ME = CALLERS["a"]


@pytest.fixture
def service(plane: BatchPlane) -> ResponseService:
    store = ResponseStore(plane.blobs, plane.clock, 3600.0)
    return ResponseService(store, plane.job_service, 100_000)


def asked(**members: Any) -> ResponseRequest:
    """A request as it is parsed."""
    return parse_response(orjson.dumps({"model": "m", "input": "hi", **members}))


async def _kept(service: ResponseService, **members: Any) -> dict[str, Any]:
    request = asked(**members)
    response_id = new_response_id(1_800_000_000)
    made = new_response(response_id, 5, request.members, status="completed", tier="default")
    part = {"type": "output_text", "text": "yes", "annotations": []}
    item = {"id": "msg_out", "type": "message", "role": "assistant", "content": [part]}
    made["output"] = [{**item, "status": "completed"}]
    await service.keep(ME, request, made)
    return made


async def test_a_conversation(service: ResponseService) -> None:
    """Oldest first; a reference to what is in it adds nothing."""
    first = await _kept(service, input="one")
    second = await _kept(service, input="two", previous_response_id=first["id"])
    reference = {"type": "item_reference", "id": "msg_out"}
    request = asked(
        input=[reference, {"role": "user", "content": "three"}],
        previous_response_id=second["id"],
    )
    items = await service.conversation(ME, request)
    texts = [
        i["content"] if isinstance(i["content"], str) else i["content"][0]["text"] for i in items
    ]
    assert texts == ["one", "yes", "two", "yes", "three"]


async def test_a_conversation_that_is_not_there(service: ResponseService) -> None:
    """Neither another tenant's nor one whose beginning was deleted."""
    first = await _kept(service)
    second = await _kept(service, previous_response_id=first["id"])
    request = asked(previous_response_id=second["id"])
    with pytest.raises(NotFound):
        await service.conversation(CALLERS["b"], request)
    await service.delete(ME, first["id"])
    with pytest.raises(NotFound) as caught:
        await service.conversation(ME, request)
    assert caught.value.code == "previous_response_not_found"


async def test_a_conversation_that_grows_too_long(service: ResponseService) -> None:
    """It is refused, not cut: the model would not know that something is missing."""
    first = await _kept(service, input="x" * 60_000)
    second = await _kept(service, input="y" * 60_000, previous_response_id=first["id"])
    with pytest.raises(ContextLengthExceeded) as caught:
        await service.conversation(ME, asked(previous_response_id=second["id"]))
    assert caught.value.param == "previous_response_id"


async def test_input_items_are_listed_whole(service: ResponseService) -> None:
    """Each has an id, and texts are parts."""
    said = {"role": "assistant", "content": "a"}
    output = {"type": "function_call_output", "call_id": "c", "output": "x"}
    made = await _kept(service, input=[said, output, {"role": "user", "content": "b"}])
    items = await service.items(ME, made["id"])
    assert [item["id"].partition("_")[0] for item in items] == ["msg", "fco", "msg"]
    assert items[0]["content"][0]["type"] == "output_text"
    assert items[2]["content"] == [{"type": "input_text", "text": "b"}]


async def test_a_background_response_is_a_job(service: ResponseService, plane: BatchPlane) -> None:
    """The job has the whole conversation; its end is the response's."""
    first = await _kept(service, input="one")
    request = asked(background=True, previous_response_id=first["id"], metadata={"a": "b"})
    made = checked(await service.start(ME, request, None), "response")
    job_id = made["id"].replace("resp_", "job_")
    job = await plane.job_service.get(ME, job_id)
    assert (job.facts.endpoint, job.facts.metadata) == ("/v1/responses", {"a": "b"})
    assert job.facts.expires_at - job.facts.created_at in {3600, 3601}
    seen: list[Any] = []

    def look(row: BatchRow) -> bool:
        seen.append(orjson.loads(row.body))
        return True

    assert await plane.run(9, look) == 1
    texts = [item["content"][0]["text"] for item in seen[0]["input"]]
    assert texts == ["one", "yes", "hi"]
    assert not {"background", "previous_response_id", "metadata"} & set(seen[0])
    assert (await service.get(ME, made["id"]))["status"] == "in_progress"
    with pytest.raises(InvalidRequest):
        await service.conversation(ME, asked(previous_response_id=made["id"]))


async def test_the_same_key_twice(service: ResponseService) -> None:
    """One response; another request under the key is refused."""
    request = asked(background=True)
    first = await service.start(ME, request, "k")
    assert await service.start(ME, request, "k") == first
    with pytest.raises(Conflict):
        await service.start(ME, asked(background=True, input="other"), "k")


async def test_cancelled(service: ResponseService, plane: BatchPlane) -> None:
    """At once and for good; then it can be deleted, and its job with it."""
    made = await service.start(ME, asked(background=True), None)
    assert (await service.cancel(ME, made["id"]))["status"] == "cancelled"
    checked(await service.cancel(ME, made["id"]), "response")
    await service.delete(ME, made["id"])
    for gone in (service.get(ME, made["id"]), plane.job_service.get(ME, _job(made))):
        with pytest.raises(NotFound):
            await gone


async def test_deleted_while_it_waits(service: ResponseService, plane: BatchPlane) -> None:
    """Nothing of it runs."""
    made = await service.start(ME, asked(background=True), None)
    await service.delete(ME, made["id"])
    assert await plane.run(9) == 0
    with pytest.raises(NotFound):
        await service.get(ME, made["id"])


async def test_refused_by_its_target(service: ResponseService, plane: BatchPlane) -> None:
    """A failed response with the error."""
    made = await service.start(ME, asked(background=True), None)
    await plane.run(9, lambda row: False)
    await plane.finish()
    failed = checked(await service.get(ME, made["id"]), "response")
    assert failed["status"] == "failed"
    assert failed["error"]["message"]


async def test_a_job_that_was_deleted(service: ResponseService, plane: BatchPlane) -> None:
    """With its job the response is gone."""
    made = await service.start(ME, asked(background=True), None)
    await plane.job_service.cancel(ME, _job(made))
    await plane.job_service.delete(ME, _job(made))
    with pytest.raises(NotFound):
        await service.get(ME, made["id"])
    await service.delete(ME, made["id"])


async def test_what_cannot_be_cancelled_or_used(service: ResponseService) -> None:
    """A response that was made at once; a model the key may not use."""
    made = await _kept(service)
    with pytest.raises(InvalidRequest):
        await service.cancel(ME, made["id"])
    with pytest.raises(ModelNotFound):
        await service.start(CALLERS["b"], asked(background=True), None)


def _job(response: dict[str, Any]) -> str:
    return str(response["id"]).replace("resp_", "job_")
