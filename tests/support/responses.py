"""The Responses API against a running gateway: its upstreams and its official client."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from tests.support.contract import checked
from tests.support.exchange import Exchange, Seen
from tests.support.scripts import Sse, chat_chunk, usage_chunk
from tests.support.serve import RunningHeadway, headway
from tests.support.upstream import ScriptedUpstream

TOOL: Any = {
    "type": "function",
    "name": "get",
    "description": "Weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": True,
}
TEXT_EVENTS = (
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
)


@dataclass
class ResponsesPlane:
    """A gateway whose model ``m`` is translated and whose model ``n`` has the endpoint itself.

    The model ``both`` goes to the target with the endpoint first.
    """

    running: RunningHeadway
    upstream: ScriptedUpstream
    native: ScriptedUpstream

    def client(self, **options: Any) -> OpenAI:
        """The official client."""
        base_url, key = self.running.base_url, self.running.key
        return OpenAI(base_url=base_url, api_key=key, max_retries=0, **options)

    def raw(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        """Status and JSON of a call without the client."""
        with self.running.client() as http:
            headers = {"authorization": f"Bearer {key}"} if key else {}
            answer = http.request(method, path, json=body, headers=headers)
        return answer.status_code, answer.json()

    def text(self, **members: Any) -> str:
        """The body of a created response as it came, streamed or not."""
        with self.running.client() as http:
            return http.post("/responses", json={"input": "x", **members}).text


@contextmanager
def responses_plane(tmp_path: Path, **env: str) -> Iterator[ResponsesPlane]:
    """A gateway with two targets and the keys of two tenants."""
    with_own = ScriptedUpstream(models=["n", "both"]).start()
    with_own.on(lambda seen: seen.path == "/v1/responses", native_answer)
    upstream = ScriptedUpstream(models=["m", "org/m", "both"]).start()
    policy = {
        "targets": {
            "own": {
                "base_url": with_own.url,
                "models": ["n", "both"],
                "responses": True,
                "retry": {"attempts": 1},
                "breaker": {"failures": 1000},
            },
            "up": {"base_url": upstream.url, "models": ["m", "org/m", "both"]},
        },
        "keys": {"other": {"key": "sk-other-tenant", "tenant": "other"}},
    }
    try:
        with headway(tmp_path, policy, env) as running:
            yield ResponsesPlane(running, upstream, with_own)
    finally:
        upstream.stop()
        with_own.stop()


def events_of(stream: Any) -> list[dict[str, Any]]:
    """All events of a stream as objects; each one is checked, and that they count from 0."""
    events = [event.model_dump() for event in stream]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return [checked(event, "response_event") for event in events]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """Their types, repeated ones once."""
    names = [event["type"] for event in events]
    return [name for at, name in enumerate(names) if at == 0 or names[at - 1] != name]


def tool_stream() -> Sse:
    """Two calls, their arguments in pieces."""
    calls = [
        {
            "index": 0,
            "id": "call_a",
            "type": "function",
            "function": {"name": "get", "arguments": ""},
        },
        {"index": 0, "function": {"arguments": '{"city":'}},
        {"index": 0, "function": {"arguments": '"Rome"}'}},
        {
            "index": 1,
            "id": "call_b",
            "type": "function",
            "function": {"name": "put", "arguments": "{}"},
        },
    ]
    chunks = [chat_chunk(tool_calls=[call]) for call in calls]
    return Sse(
        [chat_chunk(role="assistant"), *chunks, chat_chunk(finish="tool_calls"), usage_chunk(7, 9)]
    )


async def native_answer(exchange: Exchange) -> None:
    """What a target with the endpoint answers: it says how many items it got."""
    seen: Seen = exchange.seen
    text = f"{len(seen.json['input'])} items"
    if not seen.json.get("stream"):
        exchange.json(native_response(text))
        return
    await Sse(native_events(text), end="body")(exchange)


def native_response(text: str, status: str = "completed") -> dict[str, Any]:
    """A whole response of such a target."""
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"id": "msg_x", "type": "message", "role": "assistant", "status": "completed"}
    return {
        "id": "resp_of_the_target",
        "object": "response",
        "created_at": 1_760_000_000,
        "status": status,
        "model": "n-2030",
        "output": [{**item, "content": [part]}] if text else [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 11,
            "input_tokens_details": {"cached_tokens": 3},
            "output_tokens": 4,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 15,
        },
    }


def native_events(text: str) -> list[dict[str, Any]]:
    """Its stream; numbers start where it likes."""
    begun = {**native_response("", "in_progress"), "usage": None}
    place = {"item_id": "msg_x", "output_index": 0, "content_index": 0}
    item = native_response(text)["output"][0]
    bodies: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {
            "type": "response.content_part.added",
            **place,
            "part": {**item["content"][0], "text": ""},
        },
        {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []},
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": item["content"][0]},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": native_response(text)},
    ]
    return [{**body, "sequence_number": 5 + at} for at, body in enumerate(bodies)]


def said(text: str, **members: Any) -> dict[str, Any]:
    """A chat answer."""
    message = {"role": "assistant", "content": text, **members}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    }


def ended(client: OpenAI, response_id: str) -> Any:
    """The response once it is final."""
    for _ in range(400):
        response = client.responses.retrieve(response_id)
        if response.status not in {"queued", "in_progress"}:
            return response
        time.sleep(0.05)
    raise AssertionError("it did not end")


@pytest.fixture(scope="session")
def responses_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ResponsesPlane]:
    """The process, started once."""
    with responses_plane(tmp_path_factory.mktemp("responses")) as plane:
        yield plane


@pytest.fixture
def responses(responses_gateway: ResponsesPlane) -> ResponsesPlane:
    """One gateway for all tests that do not change it; its upstreams forget the test before."""
    responses_gateway.upstream.clear()
    responses_gateway.native.requests.clear()
    return responses_gateway
