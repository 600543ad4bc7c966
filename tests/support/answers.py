"""What a correct OpenAI server answers: deterministic texts, vectors and usage."""

import asyncio
import base64
import hashlib
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.exchange import Exchange

DIMENSIONS = 8
DEFAULT_TOKENS = 16


@dataclass
class Pace:
    """How fast the upstream answers, in seconds."""

    first: float = 0.0
    token: float = 0.0


def words_of(value: Any) -> int:
    """Prompt tokens of this server: words of every text, or the numbers of a token array."""
    if isinstance(value, str):
        return len(value.split())
    if isinstance(value, int) and not isinstance(value, bool):
        return 1
    if isinstance(value, list):
        return sum(words_of(item) for item in value)
    if isinstance(value, dict):
        return words_of(value.get("content")) if "content" in value else words_of(value.get("text"))
    return 0


def digest_of(value: Any) -> str:
    """Eight hex digits that identify a prompt."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def tokens_of(prompt: Any, count: int) -> list[str]:
    """``count`` output tokens; the first one is the prompt's digest."""
    return [digest_of(prompt), *(f" w{n}" for n in range(1, count))][:count]


def usage_of(prompt: int, completion: int) -> dict[str, Any]:
    """A ``usage`` member."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def prompts_of(body: dict[str, Any]) -> list[Any]:
    """The prompts of a completions or embeddings body, one per entry."""
    given = body.get("prompt", body.get("input", ""))
    if isinstance(given, list) and not all(isinstance(item, int) for item in given):
        return given
    return [given]


def _limit(body: dict[str, Any]) -> int:
    return int(body.get("max_completion_tokens") or body.get("max_tokens") or DEFAULT_TOKENS)


def _finish(body: dict[str, Any]) -> str:
    limited = body.get("max_completion_tokens") or body.get("max_tokens")
    return "length" if limited else "stop"


@dataclass(frozen=True)
class Shape:
    """The differences between the two generating endpoints."""

    chat: bool

    @property
    def prefix(self) -> str:
        return "chatcmpl" if self.chat else "cmpl"

    def kind(self, *, stream: bool) -> str:
        if not self.chat:
            return "text_completion"
        return "chat.completion.chunk" if stream else "chat.completion"

    def prompts(self, body: dict[str, Any]) -> list[Any]:
        return [body.get("messages", [])] if self.chat else prompts_of(body)

    def whole(self, text: str) -> dict[str, Any]:
        if self.chat:
            return {"message": {"role": "assistant", "content": text, "refusal": None}}
        return {"text": text}

    def delta(self, text: str) -> dict[str, Any]:
        return {"delta": {"content": text} if text else {}} if self.chat else {"text": text}


def usage_for(shape: Shape, body: dict[str, Any]) -> dict[str, Any]:
    """Usage of a call that runs to its end."""
    prompts = shape.prompts(body)
    completion = _limit(body) * len(prompts) * int(body.get("n") or 1)
    return usage_of(words_of(prompts), completion)


def _envelope(shape: Shape, body: dict[str, Any], *, stream: bool) -> dict[str, Any]:
    return {
        "id": f"{shape.prefix}-{digest_of(body)}",
        "object": shape.kind(stream=stream),
        "created": 1_760_000_000,
        "model": body.get("model"),
    }


def plain_answer(shape: Shape, body: dict[str, Any]) -> dict[str, Any]:
    """The whole answer object."""
    repeats = int(body.get("n") or 1)
    prompts = [prompt for prompt in shape.prompts(body) for _ in range(repeats)]
    choices = [
        {
            "index": index,
            **shape.whole("".join(tokens_of(prompt, _limit(body)))),
            "logprobs": None,
            "finish_reason": _finish(body),
        }
        for index, prompt in enumerate(prompts)
    ]
    head = _envelope(shape, body, stream=False)
    return {**head, "choices": choices, "usage": usage_for(shape, body)}


def stream_events(shape: Shape, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The chunks of a streamed answer, in order; the last one holds the usage when asked for."""
    wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
    base = {**_envelope(shape, body, stream=True), **({"usage": None} if wants_usage else {})}
    repeats = int(body.get("n") or 1)
    prompts = [prompt for prompt in shape.prompts(body) for _ in range(repeats)]

    def chunk(index: int, part: dict[str, Any], finish: str | None) -> dict[str, Any]:
        choice = {"index": index, **part, "logprobs": None, "finish_reason": finish}
        return {**base, "choices": [choice]}

    for index in range(len(prompts) if shape.chat else 0):
        yield chunk(index, {"delta": {"role": "assistant", "content": ""}}, None)
    columns = [tokens_of(prompt, _limit(body)) for prompt in prompts]
    for row in zip(*columns, strict=True):
        for index, token in enumerate(row):
            yield chunk(index, shape.delta(token), None)
    for index in range(len(prompts)):
        yield chunk(index, shape.delta(""), _finish(body))
    if wants_usage:
        yield {**base, "choices": [], "usage": usage_for(shape, body)}


async def generate(exchange: Exchange, shape: Shape, pace: Pace) -> None:
    """Answer a chat or completions call, streamed or not."""
    body = exchange.seen.json
    await asyncio.sleep(pace.first)
    if not body.get("stream"):
        await asyncio.sleep(pace.token * _limit(body))
        exchange.seen.usage = usage_for(shape, body)
        exchange.json(plain_answer(shape, body))
        return
    exchange.head(headers={"content-type": "text/event-stream; charset=utf-8"})
    for event in stream_events(shape, body):
        exchange.chunk(b"data: " + json.dumps(event).encode() + b"\n\n")
        await asyncio.sleep(pace.token)
    exchange.seen.usage = usage_for(shape, body)
    exchange.chunk(b"data: [DONE]\n\n")
    exchange.end()


def vector_of(prompt: Any) -> list[float]:
    """A deterministic unit-free vector of ``DIMENSIONS`` figures."""
    seed = hashlib.sha256(json.dumps(prompt).encode()).digest()
    return [byte / 256 - 0.5 for byte in seed[:DIMENSIONS]]


def embed(exchange: Exchange) -> None:
    """Answer an embeddings call, as numbers or base64."""
    body = exchange.seen.json
    prompts = prompts_of(body)
    as_base64 = body.get("encoding_format") == "base64"

    def value(prompt: Any) -> list[float] | str:
        vector = vector_of(prompt)
        packed = struct.pack(f"<{DIMENSIONS}f", *vector)
        return base64.b64encode(packed).decode() if as_base64 else vector

    count = words_of(prompts)
    exchange.seen.usage = {"prompt_tokens": count, "total_tokens": count}
    rows = [
        {"object": "embedding", "index": index, "embedding": value(prompt)}
        for index, prompt in enumerate(prompts)
    ]
    exchange.json(
        {
            "object": "list",
            "data": rows,
            "model": body.get("model"),
            "usage": exchange.seen.usage,
        }
    )
