"""Bodies of inference calls, read and checked: what is to be generated, and how it is answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import orjson

from gateway.core.errors import (
    ContextLengthExceeded,
    InvalidRequest,
    InvalidType,
    MissingParameter,
    ModelNotFound,
)
from gateway.worker.sampling import SamplingParams, alternatives, read_sampling, whole
from gateway.worker.tokenizer import Vocabulary

_MOST_CHOICES = 128
_COMPLETION_TOKENS = 16
_MOST_ALTERNATIVES = 5
_UNSUPPORTED = ("tools", "functions", "tool_choice", "function_call", "audio", "suffix")


@dataclass(frozen=True, slots=True)
class Generation:
    """One call: prompts as tokens, ``n`` choices of each, in the form that was asked for."""

    chat: bool
    prompts: tuple[tuple[int, ...], ...]
    texts: tuple[str, ...]
    n: int
    max_tokens: int | None
    sampling: SamplingParams
    priority: int | None
    stream: bool
    include_usage: bool
    echo: bool


def read_body(raw: bytes) -> dict[str, Any]:
    """The JSON object in a body. Raises InvalidRequest when it is none."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"The body is not valid JSON: {error}.") from None
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object.")
    return body


class RequestReader:
    """Reads bodies for one model. All errors are ClientErrors naming the member."""

    def __init__(self, vocabulary: Vocabulary, model: str, context: int) -> None:
        self._vocabulary = vocabulary
        self._model = model
        self._context = context

    def chat(self, body: Mapping[str, Any]) -> Generation:
        """A chat completions body."""
        messages = body.get("messages")
        if messages is None:
            raise MissingParameter("messages is missing.", param="messages")
        if not isinstance(messages, list) or not messages:
            raise InvalidType("messages must be a non-empty array.", param="messages")
        text = self._vocabulary.chat([_message(message) for message in messages])
        name = (
            "max_tokens" if body.get("max_completion_tokens") is None else "max_completion_tokens"
        )
        limit = whole(body, name, 1, 10**9)
        prompts = [self._vocabulary.encode(text)]
        return self._generation(body, prompts, [text], limit, alternatives(body))

    def completion(self, body: Mapping[str, Any]) -> Generation:
        """A completions body: a text, token ids, or an array of either."""
        prompts, texts = self._prompts(body.get("prompt"))
        limit = whole(body, "max_tokens", 1, 10**9) or _COMPLETION_TOKENS
        logprobs = whole(body, "logprobs", 0, _MOST_ALTERNATIVES)
        if body.get("echo") is True and logprobs is not None:
            message = "The bundled worker has no logprobs of a prompt that is echoed."
            raise InvalidRequest(message, param="logprobs")
        if (whole(body, "best_of", 1, _MOST_CHOICES) or 1) > (
            whole(body, "n", 1, _MOST_CHOICES) or 1
        ):
            raise InvalidRequest("The bundled worker does not support best_of.", param="best_of")
        return self._generation(body, prompts, texts, limit, logprobs)

    def _generation(
        self,
        body: Mapping[str, Any],
        prompts: Sequence[Sequence[int]],
        texts: Sequence[str],
        limit: int | None,
        logprobs: int | None,
    ) -> Generation:
        self._check(body)
        for prompt in prompts:
            self._check_length(len(prompt), limit)
        options = body.get("stream_options")
        if options is not None and body.get("stream") is not True:
            raise InvalidRequest("stream_options needs stream.", param="stream_options")
        return Generation(
            chat="messages" in body,
            prompts=tuple(tuple(prompt) for prompt in prompts),
            texts=tuple(texts),
            n=whole(body, "n", 1, _MOST_CHOICES) or 1,
            max_tokens=limit,
            sampling=read_sampling(body, logprobs),
            priority=whole(body, "priority", -(2**31), 2**31),
            stream=body.get("stream") is True,
            include_usage=isinstance(options, dict) and options.get("include_usage") is True,
            echo=body.get("echo") is True,
        )

    def _check(self, body: Mapping[str, Any]) -> None:
        model = body.get("model")
        if model is None:
            raise MissingParameter("model is missing.", param="model")
        if model != self._model:
            raise ModelNotFound("This worker does not serve that model.", param="model")
        for name in _UNSUPPORTED:
            if body.get(name):
                raise InvalidRequest(f"The bundled worker does not support {name}.", param=name)
        form = body.get("response_format")
        if form is not None and (not isinstance(form, dict) or form.get("type") != "text"):
            message = "The bundled worker answers in plain text only."
            raise InvalidRequest(message, param="response_format")
        if not isinstance(body.get("stream", False), bool | None):
            raise InvalidType("stream must be true or false.", param="stream")

    def _check_length(self, prompt: int, limit: int | None) -> None:
        if prompt + (limit or 1) > self._context:
            raise ContextLengthExceeded(
                f"This model's context is {self._context} tokens; the prompt has {prompt} and "
                f"{limit or 1} are to be generated.",
                param="messages",
            )

    def _check_tokens(self, tokens: Any) -> None:
        if not all(0 <= token < self._vocabulary.size for token in tokens):
            message = f"Token ids are from 0 to {self._vocabulary.size - 1}."
            raise InvalidRequest(message, param="prompt")

    def _prompts(self, value: object) -> tuple[list[list[int]], list[str]]:
        if value is None:
            raise MissingParameter("prompt is missing.", param="prompt")
        items = value if isinstance(value, list) and not _are_tokens(value) else [value]
        prompts, texts = [], []
        for item in items:
            if isinstance(item, str):
                prompts.append(self._vocabulary.encode(item))
                texts.append(item)
            elif _are_tokens(item):
                self._check_tokens(item)
                prompts.append(list(item))
                pieces = b"".join(self._vocabulary.pieces(token) for token in prompts[-1])
                texts.append(pieces.decode("utf-8", "replace"))
            else:
                message = "prompt must be a string, token ids, or an array of either."
                raise InvalidType(message, param="prompt")
        if not prompts or not all(prompts):
            raise InvalidRequest("prompt is empty.", param="prompt")
        return prompts, texts


def _are_tokens(value: object) -> TypeGuard[list[int]]:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, int) and not isinstance(item, bool) for item in value)
    )


def _message(message: object) -> dict[str, str]:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise InvalidType("Each message is an object with a role.", param="messages")
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(_part(part) for part in content)
    if content is not None and not isinstance(content, str):
        raise InvalidType("content must be a string or an array of parts.", param="messages")
    return {"role": message["role"], "content": content or ""}


def _part(part: object) -> str:
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    raise InvalidRequest("The bundled worker reads text parts only.", param="messages")
