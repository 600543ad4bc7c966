"""A background response as a stream."""

import time
from contextlib import suppress
from typing import Any

import openai

from tests.support.responses import ResponsesPlane
from tests.support.scripts import Sse, chat_chunk


def test_cancelled_while_it_is_watched(responses: ResponsesPlane) -> None:
    """A cancelled response ends its stream as failed and says that it was cancelled."""
    responses.upstream.on("forever", Sse([chat_chunk("x")], end="hang"))
    with responses.client() as client:
        stream = client.responses.create(model="m", input="forever", background=True, stream=True)
        first: Any = next(stream)
        client.responses.cancel(first.response.id)
        last: Any = list(stream)[-1]
    assert (last.type, last.response.status) == ("response.failed", "cancelled")


def test_deleted_while_it_is_watched(responses: ResponsesPlane) -> None:
    """The stream ends at once, by an error or as failed: never as if it was whole."""
    responses.upstream.on("forever", Sse([chat_chunk("x")], end="hang"))
    with responses.client() as client:
        stream = client.responses.create(model="m", input="forever", background=True, stream=True)
        first: Any = next(stream)
        client.responses.delete(first.response.id)
        seen: list[str] = []
        with suppress(openai.APIError):
            seen.extend(event.type for event in stream)
    assert "response.completed" not in seen


def test_it_begins_at_once(responses: ResponsesPlane) -> None:
    """The first events do not wait for the target."""
    responses.upstream.on("slowly", Sse([chat_chunk("x")], end="hang"))
    started = time.monotonic()
    with responses.client() as client:
        stream = client.responses.create(model="m", input="slowly", background=True, stream=True)
        first: Any = next(stream)
        assert first.type == "response.created"
        assert time.monotonic() - started < 2
        client.responses.delete(first.response.id)


def test_a_response_that_was_made_at_once(responses: ResponsesPlane) -> None:
    """It can be streamed again, from any number on."""
    with responses.client() as client:
        made = client.responses.create(model="m", input="x")
        whole = [e.sequence_number for e in client.responses.retrieve(made.id, stream=True)]
        rest = client.responses.retrieve(made.id, stream=True, starting_after=3)
        assert [e.sequence_number for e in rest] == whole[4:]
