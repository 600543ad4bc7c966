"""The official client, unmodified, is the judge of the Files and Batches APIs."""

from collections.abc import AsyncIterator

import openai
import orjson
import pytest
from openai import AsyncOpenAI

from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane
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
