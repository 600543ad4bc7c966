"""One input line: is it a request of this batch? Faults that a reader of the file can see."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from gateway.core.endpoints import CHAT, COMPLETIONS, EMBEDDINGS, RESPONSES
from gateway.core.nesting import MOST_LEVELS, is_depth_fault, too_deep

_REQUIRED = ("custom_id", "method", "url", "body")
_CONTENT = {
    CHAT: "messages",
    COMPLETIONS: "prompt",
    EMBEDDINGS: "input",
    RESPONSES: "input",
}


class LineFault(Exception):
    """Why a line fails the batch: the members of an entry of ``errors.data``."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param

    def entry(self, line: int | None) -> dict[str, Any]:
        """The entry for the physical line ``line``, counted from 1."""
        return {"code": self.code, "line": line, "message": self.message, "param": self.param}


@dataclass(frozen=True, slots=True)
class CheckedLine:
    """A good line: where it goes and what it asks."""

    custom_id: str
    model: str
    body: Mapping[str, Any]


class LineChecker:
    """Checks the lines of one file in order, remembering only digests of their ids."""

    def __init__(self, endpoint: str, models: Collection[str]) -> None:
        self._endpoint = endpoint
        self._models = frozenset(models)
        self._seen: dict[bytes, int] = {}

    def check(self, raw: bytes, line: int) -> CheckedLine:
        """The request on physical line ``line``. Raises LineFault."""
        request = _parsed(raw)
        for name in _REQUIRED:
            if request.get(name) is None:
                raise LineFault("missing_required_parameter", f"{name} is missing.", name)
        custom_id = self._custom_id(request["custom_id"], line)
        self._check_address(request)
        return CheckedLine(custom_id, *self._body(request["body"]))

    def _custom_id(self, custom_id: object, line: int) -> str:
        if not isinstance(custom_id, str) or not custom_id:
            raise LineFault("invalid_request", "custom_id must be a text.", "custom_id")
        digest = hashlib.blake2b(custom_id.encode(), digest_size=16).digest()
        first = self._seen.setdefault(digest, line)
        if first != line:
            message = f"custom_id '{custom_id[:256]}' was used on line {first} already."
            raise LineFault("duplicate_custom_id", message, "custom_id")
        return custom_id

    def _check_address(self, request: Mapping[str, Any]) -> None:
        if request["method"] != "POST":
            raise LineFault("invalid_method", "method must be 'POST'.", "method")
        if request["url"] != self._endpoint:
            message = f"url must be the endpoint of the batch, '{self._endpoint}'."
            raise LineFault("invalid_url", message, "url")

    def _body(self, body: object) -> tuple[str, Mapping[str, Any]]:
        if not isinstance(body, dict):
            raise LineFault("invalid_request", "body must be an object.", "body")
        if body.get("stream"):
            raise LineFault(
                "streaming_unsupported", "A batch request cannot be streamed.", "body.stream"
            )
        model = body.get("model")
        if not isinstance(model, str) or not model:
            raise LineFault("invalid_request", "body.model must be a text.", "body.model")
        if model not in self._models:
            message = f"The model '{model[:256]}' does not exist or you may not use it."
            raise LineFault("model_not_found", message, "body.model")
        content = _CONTENT.get(self._endpoint)
        if content and body.get(content) is None:
            param = f"body.{content}"
            raise LineFault("missing_required_parameter", f"{param} is missing.", param)
        return model, body


def _parsed(raw: bytes) -> Mapping[str, Any]:
    try:
        request = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if is_depth_fault(error):
            raise _too_deep() from None
        raise LineFault("invalid_json_line", "This line is not valid JSON.") from None
    if not isinstance(request, dict):
        raise LineFault("invalid_json_line", "This line is not a JSON object.")
    if too_deep(raw, request):
        raise _too_deep()
    return request


def _too_deep() -> LineFault:
    message = f"This line is nested too deeply: it may have {MOST_LEVELS} levels."
    return LineFault("invalid_json_line", message)
