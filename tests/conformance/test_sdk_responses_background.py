"""Background responses, by the official client: our queue makes them."""

import json
import time
from typing import Any

import openai
import pytest

from tests.support.contract import checked
from tests.support.responses import (
    ResponsesPlane,
    ended,
    events_of,
)
from tests.support.scripts import Sse, after, answer, chat_chunk, usage_chunk


def test_background(responses: ResponsesPlane) -> None:
    """Queued or in_progress at first, then completed with its output; the tier is told."""
    responses.upstream.on(
        "slow",
        after(0.5, Sse([chat_chunk("done"), chat_chunk(finish="stop"), usage_chunk(3, 1)])),
        times=1,
    )
    with responses.client() as client:
        made = client.responses.create(model="m", input="slow", background=True)
        checked(made.model_dump(), "response")
        assert made.status in {"queued", "in_progress"}
        states: list[Any] = [made.status]
        while states[-1] in {"queued", "in_progress"}:
            response = client.responses.retrieve(made.id)
            states.append(response.status)
            time.sleep(0.02)
        checked(response.model_dump(), "response")
        assert "in_progress" in states
        assert (response.status, response.output_text) == ("completed", "done")
        assert (response.background, response.service_tier) == (True, "flex")
        assert response.usage is not None
        assert response.usage.total_tokens == 4
        after_it = client.responses.create(model="m", input="and?", previous_response_id=made.id)
        assert after_it.status == "completed"
        assert client.responses.cancel(made.id).status == "completed"
        client.responses.delete(made.id)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(made.id)
    assert [m["content"] for m in responses.upstream.calls("and?")[-1].json["messages"]] == [
        "slow",
        "done",
        "and?",
    ]


def test_background_cancel(responses: ResponsesPlane) -> None:
    """The call upstream is closed; cancelling again gives the same response."""
    responses.upstream.on("forever", Sse([chat_chunk("x")], end="hang"))
    with responses.client() as client:
        made = client.responses.create(model="m", input="forever", background=True)
        responses.upstream.wait(lambda: responses.upstream.calls("forever"), 10)
        cancelled = client.responses.cancel(made.id)
        assert cancelled.status == "cancelled"
        assert client.responses.cancel(made.id).model_dump() == cancelled.model_dump()
        responses.upstream.wait(lambda: responses.upstream.calls("forever")[0].peer_closed_at, 5)
        client.responses.delete(made.id)


def test_background_failure(responses: ResponsesPlane) -> None:
    """What the target refuses is a failed response with its error."""
    responses.upstream.on(
        "bad", answer({"error": {"message": "no", "type": "x", "code": "bad_thing"}}, 400)
    )
    with responses.client() as client:
        made = client.responses.create(
            model="m",
            input="bad",
            background=True,
            extra_body={"background_options": {"completion_window": "8h"}},
        )
        assert made.service_tier == "flex"
        response = ended(client, made.id)
    checked(response.model_dump(), "response")
    assert response.status == "failed"
    assert response.error is not None
    assert (response.error.code, response.error.message) == ("bad_thing", "no")


def test_background_stream_and_resume(responses: ResponsesPlane) -> None:
    """A stream of a background response; a reader that lost it goes on after the last number."""
    responses.upstream.on(
        "later", after(0.3, Sse([chat_chunk("done"), chat_chunk(finish="stop"), usage_chunk(3, 1)]))
    )
    with responses.client() as client:
        events = events_of(
            client.responses.create(model="m", input="later", background=True, stream=True)
        )
        assert [e["type"] for e in events[:3]] == [
            "response.created",
            "response.queued",
            "response.in_progress",
        ]
        assert events[-1]["type"] == "response.completed"
        response_id = events[0]["response"]["id"]
        again = client.responses.retrieve(response_id, stream=True, starting_after=4)
        rest = [event.model_dump() for event in again]
    assert rest == events[5:]


def test_a_batch_of_responses(responses: ResponsesPlane) -> None:
    """The endpoint of a batch; its lines are responses, a row that goes on from one is refused."""
    rows = [
        {"custom_id": "a", "body": {"model": "m", "input": "hi"}},
        {"custom_id": "b", "body": {"model": "n", "input": "hi"}},
        {"custom_id": "c", "body": {"model": "m", "input": "x", "tools": [{"type": "mcp"}]}},
    ]
    lines = [{**row, "method": "POST", "url": "/v1/responses"} for row in rows]
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    with responses.client() as client:
        file = client.files.create(file=("in.jsonl", content), purpose="batch")
        batch = client.batches.create(
            input_file_id=file.id, endpoint="/v1/responses", completion_window="24h"
        )
        while batch.status not in {"completed", "failed"}:
            time.sleep(0.05)
            batch = client.batches.retrieve(batch.id)
        assert (batch.status, batch.output_file_id is not None) == ("completed", True)
        output = client.files.content(str(batch.output_file_id)).text.splitlines()
        errors = client.files.content(str(batch.error_file_id)).text.splitlines()
    found = {line["custom_id"]: line["response"]["body"] for line in map(json.loads, output)}
    assert sorted(found) == ["a", "b"]
    assert all(checked(body, "response")["status"] == "completed" for body in found.values())
    assert [json.loads(line)["custom_id"] for line in errors] == ["c"]
