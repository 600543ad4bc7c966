"""OpenAI objects of the worker's answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.core.ids import new_id
from gateway.worker.sequence import Event, TokenLogprob

Piece = Callable[[int], bytes]


@dataclass(slots=True)
class Choice:
    """One answer as it grows. ``offsets`` are where in the text each listed token began."""

    text: str = ""
    tokens: int = 0
    logprobs: list[TokenLogprob] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    finish_reason: str | None = None

    def add(self, event: Event) -> None:
        """Take what a step gave."""
        if event.logprob is not None:
            self.logprobs.append(event.logprob)
            self.offsets.append(len(self.text))
        self.text += event.text
        self.tokens += event.tokens
        self.finish_reason = event.finish_reason or self.finish_reason


class Answer:
    """Builds the objects of one call. ``pieces`` gives the bytes of a token."""

    def __init__(self, *, chat: bool, model: str, created: int, pieces: Piece) -> None:
        self.chat = chat
        self._pieces = pieces
        kind = "chat.completion" if chat else "text_completion"
        identity = new_id("chatcmpl" if chat else "cmpl").replace("_", "-")
        self._head = {"id": identity, "object": kind, "created": created, "model": model}

    @property
    def chunk_head(self) -> dict[str, Any]:
        """The members that all events of a stream share."""
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return {**self._head, "object": kind}

    def whole(self, choices: Sequence[Choice], usage: dict[str, Any]) -> dict[str, Any]:
        """The plain answer."""
        listed = [self._choice(index, choice) for index, choice in enumerate(choices)]
        return {**self._head, "choices": listed, "usage": usage}

    def logprobs(
        self, logprobs: Sequence[TokenLogprob], offsets: Sequence[int]
    ) -> dict[str, Any] | None:
        """The ``logprobs`` member; None when none were asked for."""
        if not logprobs:
            return None
        if self.chat:
            return {"content": [self._chat_logprob(item) for item in logprobs], "refusal": None}
        tops = [{self._text(token): value for token, value in item.top} for item in logprobs]
        return {
            "tokens": [self._text(item.token) for item in logprobs],
            "token_logprobs": [item.logprob for item in logprobs],
            "top_logprobs": tops,
            "text_offset": list(offsets),
        }

    def _choice(self, index: int, choice: Choice) -> dict[str, Any]:
        built: dict[str, Any] = {"index": index}
        if self.chat:
            built["message"] = {"role": "assistant", "content": choice.text, "refusal": None}
        else:
            built["text"] = choice.text
        built["logprobs"] = self.logprobs(choice.logprobs, choice.offsets)
        built["finish_reason"] = choice.finish_reason
        return built

    def _chat_logprob(self, item: TokenLogprob) -> dict[str, Any]:
        top = [self._named(token, value) for token, value in item.top]
        return {**self._named(item.token, item.logprob), "top_logprobs": top}

    def _named(self, token: int, value: float) -> dict[str, Any]:
        return {"token": self._text(token), "logprob": value, "bytes": list(self._pieces(token))}

    def _text(self, token: int) -> str:
        return self._pieces(token).decode("utf-8", "replace")


def usage_of(prompt: int, completion: int) -> dict[str, Any]:
    """The ``usage`` member."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
