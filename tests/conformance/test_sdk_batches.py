"""The official client, unmodified, is the judge of the Files and Batches APIs."""

from collections.abc import AsyncIterator

import openai
import orjson
import pytest
from openai import AsyncOpenAI

from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane, eventually
from tests.support.contract import sample
from tests.support.served import served


@pytest.fixture
async def client(plane: BatchPlane) -> AsyncIterator[AsyncOpenAI]:
    async with (
        served(plane.app) as url,
        AsyncOpenAI(base_url=f"{url}/v1", api_key="k", default_headers={"x-caller": "a"}) as client,
    ):
        yield client


async def test_upload_create_download(client: AsyncOpenAI, plane: BatchPlane) -> None:
    """The whole way of a batch: ids come back exactly, every answer parses."""
    content = sample("s4_windows_unicode", MODEL="m")
    file = await client.files.create(
        file=("in.jsonl", content),
        purpose="batch",
        expires_after={"anchor": "created_at", "seconds": 7200},
    )
    assert file.expires_at == file.created_at + 7200
    assert (await client.files.wait_for_processing(file.id)).status == "processed"
    batch = await client.batches.create(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        metadata={"run": "1"},
        extra_headers={"idempotency-key": "once"},
    )
    assert batch.status == "validating"
    await plane.intake.step()
    while await plane.run(2):
        pass
    await plane.finish()
    batch = await client.batches.retrieve(batch.id)
    assert batch.status == "completed"
    assert batch.request_counts is not None
    assert batch.request_counts.completed == 3
    assert batch.output_file_id is not None
    lines = (await client.files.content(batch.output_file_id)).text.split("\n")[:-1]
    wanted = {orjson.loads(line)["custom_id"] for line in content[3:].split(b"\r\n") if line}
    assert {orjson.loads(line)["custom_id"] for line in lines} == wanted
    assert (await client.files.delete(file.id)).deleted


async def test_lists_over_three_pages(client: AsyncOpenAI, plane: BatchPlane) -> None:
    """Auto-paging goes through all pages, also while the listed files are deleted."""
    file_id = await plane.upload(orjson.dumps(chat_line("1", "x")))
    made = {(await plane.create(file_id))["id"] for _ in range(5)}
    assert {batch.id async for batch in client.batches.list(limit=2)} == made
    files = {await plane.upload(b"x", "user_data") for _ in range(5)}
    seen = set()
    async for file in client.files.list(limit=2, purpose="user_data", order="asc"):
        seen.add(file.id)
        await client.files.delete(file.id)
    assert seen == files


async def test_errors_have_their_class(client: AsyncOpenAI, plane: BatchPlane) -> None:
    """404, 400, and a 409 that is not tried again."""
    with pytest.raises(openai.NotFoundError):
        await client.files.retrieve("file-" + "0" * 24)
    with pytest.raises(openai.BadRequestError):
        await client.batches.list(limit=500)
    batch_id = await plane.start()
    with pytest.raises(openai.ConflictError) as refused:
        await client.batches.cancel(batch_id)
    assert refused.value.response.headers["x-should-retry"] == "false"


async def test_cancel_in_every_state(client: AsyncOpenAI, plane: BatchPlane) -> None:
    """validating, in_progress, finalizing, cancelling, cancelled: 200; the ended ones: 409."""

    async def cancelled(batch_id: str) -> str:
        return (await client.batches.cancel(batch_id)).status

    content = b"".join(orjson.dumps(chat_line(str(n), "x")) + b"\n" for n in range(2))
    waiting = (await plane.create(await plane.upload(content)))["id"]
    assert await cancelled(waiting) == "cancelling"
    assert await cancelled(waiting) == "cancelling"
    await plane.intake.step()
    assert await cancelled(waiting) == "cancelled"

    running = await plane.start(chat_line("1", "x"), chat_line("2", "x"))
    await plane.run(1)
    assert await cancelled(running) == "cancelling"
    await plane.finish()
    batch = await client.batches.retrieve(running)
    assert batch.status == await cancelled(running) == "cancelled"
    assert batch.output_file_id is not None
    assert batch.error_file_id is not None

    finalizing = await plane.start(chat_line("1", "x"))
    await plane.run(1)
    record = await plane.batches.load(finalizing)
    assert record is not None
    await plane.finalizer._enter_finalizing(record)
    assert (await client.batches.retrieve(finalizing)).status == "finalizing"
    assert await cancelled(finalizing) == "cancelling"
    await plane.finish()
    assert (await client.batches.retrieve(finalizing)).status == "cancelled"

    expired = await plane.start(chat_line("1", "x"), completion_window="1s")

    async def is_late() -> bool:
        return (await plane.queue.tick("m.0", 10)).expired > 0

    await eventually(is_late)
    await plane.finish()
    failed = await plane.start()
    done = await plane.start(chat_line("1", "x"))
    await plane.run(1)
    await plane.finish()
    for ended, status in ((expired, "expired"), (failed, "failed"), (done, "completed")):
        assert (await client.batches.retrieve(ended)).status == status
        with pytest.raises(openai.ConflictError):
            await client.batches.cancel(ended)


async def test_metadata_and_expiry_come_back(client: AsyncOpenAI, plane: BatchPlane) -> None:
    """16 pairs of full length as they were given; the output file says when it goes."""
    metadata = {f"k{n}".ljust(64, "x"): "v" * 512 for n in range(16)}
    file = await client.files.create(
        file=("in.jsonl", orjson.dumps(chat_line("1", "x"))), purpose="batch"
    )
    batch = await client.batches.create(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        metadata=metadata,
        output_expires_after={"anchor": "created_at", "seconds": 7200},
    )
    await plane.intake.step()
    await plane.run(1)
    await plane.finish()
    batch = await client.batches.retrieve(batch.id)
    assert batch.metadata == metadata
    assert [b.metadata async for b in client.batches.list()] == [metadata]
    assert batch.output_file_id is not None
    output = await client.files.retrieve(batch.output_file_id)
    assert output.expires_at == output.created_at + 7200


async def test_an_idempotency_key_makes_one_batch(client: AsyncOpenAI, plane: BatchPlane) -> None:
    """The same call twice is one batch; another call with the key is refused at once."""
    file_id = await plane.upload(orjson.dumps(chat_line("1", "x")))

    async def create(window: str) -> str:
        batch = await client.batches.create(
            input_file_id=file_id,
            endpoint="/v1/chat/completions",
            completion_window=window,  # type: ignore[arg-type]  # the client knows 24h alone
            extra_headers={"idempotency-key": "one"},
        )
        return batch.id

    assert await create("24h") == await create("24h")
    with pytest.raises(openai.ConflictError):
        await create("48h")
    assert len([batch async for batch in client.batches.list()]) == 1
