"""What the clients of other people ask for, and the scripted upstream's answers to it.

A word in the prompt decides: ``WEATHER`` calls a tool and then reports, ``NUMBER`` answers a JSON
object, ``BUSY``, ``WRONG`` and ``BROKEN`` fail with 429, 400 and 500, ``SLOW`` never ends.
"""

import asyncio
import json
from typing import Any

from tests.support.exchange import Exchange
from tests.support.scripts import Script, Sse, answer, chat_chunk, error, usage_chunk
from tests.support.upstream import ScriptedUpstream

USAGE = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
REPORT = "It is 21 degrees in Paris."
NUMBER = {"number": 7}
ARGUMENTS = {"city": "Paris"}


def play(upstream: ScriptedUpstream) -> None:
    """Have ``upstream`` know every scene; the first one that matches counts."""
    upstream.on('"role": "tool"', _says(REPORT))
    upstream.on('"role":"tool"', _says(REPORT))
    upstream.on("WEATHER", _calls("get_weather", ARGUMENTS))
    upstream.on("NUMBER", _number)
    upstream.on("BUSY", error(429, "busy", code="rate_limit_exceeded", kind="rate_limit_error"))
    upstream.on("WRONG", error(400, "wrong", code="bad", kind="invalid_request_error"))
    upstream.on("BROKEN", error(500, "broken"))
    upstream.on("SLOW", Sse([chat_chunk("", role="assistant"), chat_chunk("One")], end="hang"))


def _says(text: str) -> Script:
    pieces = [text[at : at + 4] for at in range(0, len(text), 4)]
    chunks = [chat_chunk("", role="assistant"), *(chat_chunk(piece) for piece in pieces)]
    return _either({"role": "assistant", "content": text}, chunks, "stop")


def _calls(name: str, arguments: dict[str, Any]) -> Script:
    """A tool call; streamed, its arguments come in two halves."""
    text = json.dumps(arguments)
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": text}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    begun = {**call, "index": 0, "function": {"name": name, "arguments": ""}}
    halves = [{"index": 0, "function": {"arguments": half}} for half in (text[:6], text[6:])]
    chunks = [
        chat_chunk(None, role="assistant", tool_calls=[begun]),
        *(chat_chunk(None, tool_calls=[half]) for half in halves),
    ]
    return _either(message, chunks, "tool_calls")


async def _number(exchange: Exchange) -> None:
    """As JSON text, or as the call of whatever tool the client offers for it."""
    tools = exchange.seen.json.get("tools")
    if tools:
        await _calls(tools[0]["function"]["name"], NUMBER)(exchange)
    else:
        await _says(json.dumps(NUMBER))(exchange)


def _either(message: dict[str, Any], chunks: list[dict[str, Any]], finish: str) -> Script:
    whole = {
        "id": "chatcmpl-scene",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": USAGE,
    }
    end = [chat_chunk(finish=finish), usage_chunk(5, 3)]

    async def script(exchange: Exchange) -> None:
        await asyncio.sleep(0)
        if exchange.seen.json.get("stream"):
            await Sse([*chunks, *end])(exchange)
        else:
            await answer(whole)(exchange)

    return script
