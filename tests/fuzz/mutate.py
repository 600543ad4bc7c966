"""Changes to JSON and to bytes, drawn from a seeded source."""

import copy
import json
import random
from typing import Any

_CHAT = {
    "model": "m",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "hé"}]}],
    "stream": True,
    "stream_options": {"include_usage": True},
    "max_tokens": 5,
    "n": 1,
    "temperature": 0.5,
    "stop": ["a"],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "metadata": {"a": "b"},
    "service_tier": "auto",
    "logit_bias": {"5": 1},
    "extra_body": {"top_k": 3},
}
#: Path and a good body.
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", _CHAT),
    ("/v1/chat/completions", {**_CHAT, "stream": False}),
    ("/v1/completions", {"model": "m", "prompt": ["a", [1, 2]], "stream": True, "echo": True}),
    ("/v1/embeddings", {"model": "m", "input": ["a", "b"], "encoding_format": "base64"}),
    ("/v1/responses", {"model": "m", "input": [{"role": "user", "content": "a"}], "stream": True}),
    (
        "/v1/jobs",
        {
            "endpoint": "/v1/chat/completions",
            "body": {"model": "m", "messages": [{"role": "user", "content": "a"}]},
            "priority": 3,
            "deadline": "2h",
            "metadata": {"k": "v"},
        },
    ),
    (
        "/v1/batches",
        {
            "input_file_id": "file-0",
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {"k": "v"},
        },
    ),
]
_ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 1e308, -0.0, 1.5, float("nan"),
    float("inf"), "", "a", "\x00", "\ud800", "日本", "x" * 5000, [], {}, [[]], [None], {"": ""},
    [1, "a", {}], {"role": 1}, [[[[[[]]]]]], "m",
]  # fmt: skip
_TEXT = [b"\x00", b"\xff", b"\xc3", b"\\u", b'"', b"{", b"}", b"[", b"]", b",", b":", b"\r\n"]
_TEXT += [b"\r", b"\n\n", b"data: ", b"data:", b"event: error\n", b": x\n", b"[DONE]", b"1e999"]


def some_body(chance: random.Random) -> tuple[str, bytes]:
    """A path, and a body that is more or less wrong."""
    path, good = chance.choice(REQUESTS)
    value: Any = copy.deepcopy(good)
    for _ in range(chance.randint(0, 3)):
        value = _changed(chance, value)
    if chance.random() < 0.02:
        value = _deep(chance.choice([150, 250, 2000]))
    text = json.dumps(value, ensure_ascii=chance.random() < 0.5)
    body = text.encode("utf-8", "surrogatepass")
    return path, changed_bytes(chance, body) if chance.random() < 0.3 else body


def changed_bytes(chance: random.Random, text: bytes) -> bytes:
    """``text`` with one to four changes anywhere."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(text))
        end = min(len(text), at + chance.randint(1, 40))
        text = chance.choice(
            [
                text[:at] + chance.choice(_TEXT) + text[at:],
                text[:at] + text[end:],
                text[:end] + text[at:],
                text[:at] + bytes([chance.randrange(256)]) + text[at + 1 :],
                text[:at],
            ]
        )
    return text


def pieces(chance: random.Random, text: bytes) -> list[bytes]:
    """``text`` cut anywhere."""
    cuts = sorted(chance.randint(0, len(text)) for _ in range(chance.randint(0, 8)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True) if a < b]


def _changed(chance: random.Random, value: Any) -> Any:
    """``value`` with one change at some depth."""
    if not value or not isinstance(value, dict | list) or chance.random() < 0.1:
        return chance.choice(_ODD)
    if isinstance(value, list):
        at = chance.randrange(len(value))
        return [*value[:at], _changed(chance, value[at]), *value[at + 1 :]]
    name = chance.choice(list(value))
    kind = chance.random()
    if kind < 0.15:
        return {key: item for key, item in value.items() if key != name}
    if kind < 0.3:
        other = chance.choice(["", "x", "api_base", "priority", "user", "prompt", "input", "seed"])
        return {**value, other: chance.choice(_ODD)}
    return {**value, name: _changed(chance, value[name])}


def _deep(levels: int) -> Any:
    value: Any = []
    for _ in range(min(levels, 900)):
        value = [value]
    return {"model": "m", "messages": value, "input": value}
