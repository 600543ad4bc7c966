"""Bodies of inference calls, as far as their time depends on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.core.errors import InvalidRequest, ModelNotFound
from gateway.schemas.chat import parse_chat
from gateway.schemas.completions import DEFAULT_MAX_TOKENS, parse_completion
from gateway.schemas.requests import ModelRequest

_TEXT = " the model keeps time and says what it would take to say these words again"
WORDS = tuple(f" {word}" for word in _TEXT.split())
_BYTES_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """One call: tokens in, tokens out, and the form of the answer."""

    chat: bool
    prompt: int
    output: int
    reason: str
    priority: int
    stream: bool
    usage: bool


def read_call(body: bytes, *, chat: bool, model: str, natural: int, context: int) -> Wanted:
    """Read a body for ``model``. Raises ClientErrors.

    A prompt has a token for four bytes. The answer has as many tokens as ``max_tokens`` allows, up
    to the first ``stop`` in its text; without a limit it ends by itself after ``natural`` tokens,
    or with ``ignore_eos`` at the end of the ``context``.
    """
    request = parse_chat(body) if chat else parse_completion(body)
    members = request.members
    if request.model != model:
        raise ModelNotFound(f"The model `{request.model}` does not exist.", param="model")
    if request.choices != 1:
        raise InvalidRequest("The simulated engine gives one choice for one prompt.", param="n")
    prompt = _chat_tokens(members["messages"]) if chat else _prompt_tokens(members["prompt"])
    room = context - prompt
    if room < 1:
        raise InvalidRequest(
            f"This model's maximum context length is {context} tokens; the prompt has {prompt}.",
            code="context_length_exceeded",
        )
    output, reason = _output(request, room, natural, chat=chat)
    priority = members.get("priority") or 0
    if not isinstance(priority, int):
        raise InvalidRequest("priority is an integer.", param="priority")
    return Wanted(chat, prompt, output, reason, priority, request.stream, request.wants_usage)


def _output(request: ModelRequest, room: int, natural: int, *, chat: bool) -> tuple[int, str]:
    """Tokens of the answer and why it ends."""
    members = request.members
    limit = members.get("max_completion_tokens") or members.get("max_tokens")
    if limit is None and not chat:
        limit = DEFAULT_MAX_TOKENS
    if limit is not None or members.get("ignore_eos"):
        output, reason = max(1, min(limit or room, room)), "length"
    else:
        output, reason = min(natural, room), "stop"
    stopped = _stopped(members.get("stop") or (), output)
    return (stopped, "stop") if stopped else (output, reason)


def _stopped(stops: str | list[str] | tuple[()], output: int) -> int:
    """Tokens until the first of ``stops`` is written; 0: none is."""
    text = ""
    for count in range(1, min(output, 2 * len(WORDS)) + 1):
        text += WORDS[(count - 1) % len(WORDS)]
        if any(stop in text for stop in ([stops] if isinstance(stops, str) else stops)):
            return count
    return 0


def _chat_tokens(messages: list[Mapping[str, Any]]) -> int:
    size = 0
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        size += sum(_size(part.get("text")) for part in parts if isinstance(part, dict))
    return max(1, size // _BYTES_A_TOKEN)


def _prompt_tokens(prompt: Any) -> int:
    only = prompt[0] if isinstance(prompt, list) and isinstance(prompt[0], str | list) else prompt
    return max(1, len(only) if isinstance(only, list) else _size(only) // _BYTES_A_TOKEN)


def _size(text: object) -> int:
    return len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else 0
