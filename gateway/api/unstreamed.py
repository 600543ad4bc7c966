"""A target that answers a streamed call with one plain answer: what it says, as a stream."""

import asyncio
from collections.abc import Iterator
from typing import Any

from gateway.api.calls import Call
from gateway.core.endpoints import CHAT, RESPONSES
from gateway.core.exact_json import dumps
from gateway.core.large_json import LARGE
from gateway.providers.answers import plain_answer
from gateway.providers.base import Reply
from gateway.providers.broken_answers import malformed_answer
from gateway.providers.scrubber import Scrubber
from gateway.providers.sse import BOM
from gateway.responses.builder import MALFORMED
from gateway.responses.events import ENDED, encoded
from gateway.responses.replay import Replay
from gateway.routing.route import Route

Json = dict[str, Any]
_DONE = b"data: [DONE]\n\n"
_CHUNK = "chat.completion.chunk"


async def events_of_whole(call: Call, route: Route, reply: Reply, begun: bytes) -> bytes:
    """The events that the answer comes to, which begins with ``begun``.

    Raises what a plain call raises: the classified error that the answer tells of, UpstreamFailed
    when it is none.
    """
    data = begun.removeprefix(BOM) + await reply.read()
    endpoint, _ = call.asked_of(route)
    scrub = call.parts.registry.scrubber(route.target)
    if len(data) > LARGE:
        return await asyncio.to_thread(_events, data, endpoint, route, scrub)
    return _events(data, endpoint, route, scrub)


def _events(data: bytes, endpoint: str, route: Route, scrub: Scrubber) -> bytes:
    answer = plain_answer(data, endpoint, route.target, scrub)
    try:
        return _response(answer) if endpoint == RESPONSES else b"".join(_chunks(answer, endpoint))
    except MALFORMED:
        raise malformed_answer(route.target) from None


def _chunks(answer: Json, endpoint: str) -> Iterator[bytes]:
    head = {name: v for name, v in answer.items() if name not in {"choices", "usage"}}
    if endpoint == CHAT:
        head["object"] = _CHUNK
    for place, choice in enumerate(answer["choices"]):
        choice.setdefault("index", place)
        parts = _parts(choice) if endpoint == CHAT else [choice]
        yield from (_event({**head, "choices": [part]}) for part in parts)
    if isinstance(usage := answer.get("usage"), dict):
        yield _event({**head, "choices": [], "usage": usage})
    yield _DONE


def _parts(choice: Json) -> tuple[Json, Json]:
    """The message as a delta, and the end."""
    message = {name: v for name, v in choice.pop("message").items() if v is not None}
    for index, tool in enumerate(message.get("tool_calls") or ()):
        tool.setdefault("index", index)
    delta = {"role": "assistant", "content": None, **message}
    finish = choice.pop("finish_reason", None)
    return (
        {**choice, "delta": delta, "finish_reason": None},
        {"index": choice["index"], "delta": {}, "finish_reason": finish},
    )


def _response(answer: Json) -> bytes:
    if answer.get("status") not in ENDED:
        raise ValueError("no end")
    return encoded(Replay().ended(answer))


def _event(chunk: Json) -> bytes:
    return b"data: %b\n\n" % dumps(chunk)
