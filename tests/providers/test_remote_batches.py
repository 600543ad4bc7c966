"""A provider's Batch API as a client."""

from collections.abc import AsyncIterator, Iterator

import pytest

from gateway.core.clock import SystemClock
from gateway.core.errors import UpstreamFailed, UpstreamRefused, UpstreamRejected
from gateway.providers.remote_batches import RemoteBatches
from tests.support.batch_provider import BatchProvider
from tests.support.ports import free_port

ROW = (
    b'{"custom_id":"s:0","method":"POST","url":"/v1/chat/completions","body":{"model":"m",'
    b'"messages":[{"role":"user","content":"hi\xe2\x80\xa8"}]}}\n'
)


@pytest.fixture
def provider() -> Iterator[BatchProvider]:
    """A running provider."""
    server = BatchProvider().start()
    yield server
    server.stop()


@pytest.fixture
async def api(provider: BatchProvider) -> AsyncIterator[RemoteBatches]:
    """A client of it."""
    client = RemoteBatches("p", provider.url, SystemClock(), api_key="sk-secret")
    yield client
    await client.aclose()


async def test_from_upload_to_lines(api: RemoteBatches, provider: BatchProvider) -> None:
    """A batch is made, found by its mark, watched, and its lines read, split at LF only."""
    file = await api.upload(ROW)
    assert provider.uploads[file] == ROW
    made = await api.create(file, "/v1/chat/completions", "24h", "carry_1")
    assert not made.ended
    found = await api.find("carry_1")
    assert found is not None
    assert found.id == made.id
    assert await api.find("carry_2") is None
    ended = await api.get(made.id)
    assert ended.ended
    lines = [line async for line in api.lines(ended.files[0])]
    assert [line["custom_id"] for line in lines] == ["s:0"]
    assert lines[0]["response"]["body"]["choices"][0]["message"]["content"] == "hi\u2028"
    await api.delete_file(file)
    assert provider.deleted == [file]


async def test_cancel_and_fault(api: RemoteBatches, provider: BatchProvider) -> None:
    """A cancelled batch ends; one that the provider refuses says why."""
    provider.hold = True
    first = await api.create(await api.upload(ROW), "/v1/chat/completions", "24h", "a")
    await api.cancel(first.id)
    assert (await api.get(first.id)).status == "cancelled"
    provider.hold, provider.end_as = False, "failed"
    second = await api.create(await api.upload(ROW), "/v1/chat/completions", "24h", "b")
    assert (await api.get(second.id)).fault == "too many tokens queued"


async def test_failures_are_ours(api: RemoteBatches, provider: BatchProvider) -> None:
    """Refusals, HTML and nobody there are upstream errors without the key."""
    provider.refuse = (400, {"error": {"message": "sk-secret is out of quota", "type": "x"}})
    with pytest.raises(UpstreamRejected) as refused:
        await api.upload(ROW)
    assert "sk-secret" not in str(refused.value.message)
    provider.lose_creates = 1
    with pytest.raises(UpstreamFailed):
        await api.create("file-0", "/v1/chat/completions", "24h", "a")
    away = RemoteBatches("p", f"http://127.0.0.1:{free_port()}/v1", SystemClock())
    with pytest.raises(UpstreamRefused):
        await away.get("batch_1")
    await away.aclose()
