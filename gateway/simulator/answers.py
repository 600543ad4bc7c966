"""OpenAI objects of a simulated engine's answers; tokens are encoded once a call."""

from typing import Any

import orjson

from gateway.core.ids import new_id
from gateway.core.usage import Usage
from gateway.simulator.requests import WORDS, Wanted


class Answer:
    """The events or the body of one call."""

    def __init__(self, wanted: Wanted, model: str, created: int) -> None:
        self._wanted = wanted
        self._head = {
            "id": new_id("chatcmpl" if wanted.chat else "cmpl").replace("_", "-"),
            "object": "chat.completion" if wanted.chat else "text_completion",
            "created": created,
            "model": model,
        }
        self._pieces: tuple[bytes, ...] = ()

    def opening(self) -> bytes:
        """The first event of a chat stream; of a completion there is none."""
        if not self._wanted.chat:
            return b""
        return self._event({"delta": {"role": "assistant", "content": ""}}, None)

    def words(self, start: int, end: int) -> bytes:
        """One event for the tokens from ``start`` up to ``end``."""
        if end == start + 1:
            self._pieces = self._pieces or tuple(self._word(word) for word in WORDS)
            return self._pieces[start % len(WORDS)]
        return self._word("".join(WORDS[at % len(WORDS)] for at in range(start, end)))

    def closing(self) -> bytes:
        """Why it ends, the usage if wanted, and the end."""
        empty: dict[str, Any] = {"delta": {}} if self._wanted.chat else {"text": ""}
        last = self._event(empty, self._wanted.reason)
        if self._wanted.usage:
            last += _framed({**self._chunk_head(), "choices": [], "usage": self.usage()})
        return last + b"data: [DONE]\n\n"

    def whole(self) -> bytes:
        """The plain answer."""
        text = "".join(WORDS[at % len(WORDS)] for at in range(self._wanted.output))
        said = (
            {"message": {"role": "assistant", "content": text, "refusal": None}}
            if self._wanted.chat
            else {"text": text}
        )
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": self._wanted.reason}
        return orjson.dumps({**self._head, "choices": [choice], "usage": self.usage()})

    def usage(self) -> dict[str, Any]:
        """Tokens in and out."""
        return Usage(self._wanted.prompt, self._wanted.output).to_openai()

    def _word(self, text: str) -> bytes:
        return self._event({"delta": {"content": text}} if self._wanted.chat else {"text": text})

    def _event(self, said: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": reason}
        usage = {"usage": None} if self._wanted.usage else {}
        return _framed({**self._chunk_head(), "choices": [choice], **usage})

    def _chunk_head(self) -> dict[str, Any]:
        kind = "chat.completion.chunk" if self._wanted.chat else "text_completion"
        return {**self._head, "object": kind}


def _framed(event: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(event) + b"\n\n"
