"""The order of rows inside a segment: any contiguous range is a good batch for an engine.

Rows that share a prompt prefix lie together, so that the engine computes it once; among those,
rows of similar size lie together, the largest first, so that a batch ends about at once.
"""

import hashlib
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

ROW = struct.Struct("<QIIQ")
"""One row of an index: offset u64, length u32, tokens u32, prefix u64; 24 bytes."""

_BYTES_PER_TOKEN = 4
_DEFAULT_OUTPUT = 256
_IMAGE_TOKENS = 1000
_MOST_TOKENS = 2**31
_PREFIX_CHARS = 256


@dataclass(frozen=True, slots=True)
class IndexRow:
    """Where a row lies in the input file and what it is like. ``prefix`` 0: shared by nobody."""

    offset: int
    length: int
    tokens: int
    prefix: int


def ordered(rows: Sequence[IndexRow]) -> list[IndexRow]:
    """``rows`` in dispatch order; a prefix that only one row has is no prefix."""
    shared = Counter(row.prefix for row in rows)
    grouped = [row if shared[row.prefix] > 1 else _alone(row) for row in rows]
    first: dict[int, int] = {}
    for row in grouped:
        first.setdefault(row.prefix, row.offset)
    return sorted(grouped, key=lambda row: (first[row.prefix], -_bucket(row.tokens), row.offset))


def packed(rows: Sequence[IndexRow]) -> bytes:
    """The index of a segment."""
    return b"".join(ROW.pack(row.offset, row.length, row.tokens, row.prefix) for row in rows)


def tokens_column(index: bytes) -> bytes:
    """The token estimates of an index as 4-byte little-endian integers."""
    return b"".join(index[at + 12 : at + 16] for at in range(0, len(index), ROW.size))


def estimated_tokens(body: Mapping[str, Any]) -> int:
    """Prompt tokens plus expected output tokens, by size alone; 1 to 2^31."""
    prompt = sum(_size(body.get(name)) for name in ("messages", "prompt", "input", "tools"))
    tokens = 1 + prompt // _BYTES_PER_TOKEN
    if body.get("input") is None:
        wanted = _positive(body.get("max_completion_tokens")) or _positive(body.get("max_tokens"))
        tokens += (wanted or _DEFAULT_OUTPUT) * (_positive(body.get("n")) or 1)
    return min(tokens, _MOST_TOKENS)


def prefix_hash(body: Mapping[str, Any]) -> int:
    """64 bits over what other rows may start with too: tools and system text, or first words."""
    head = [body.get("tools"), _head(body)]
    digest = hashlib.blake2b(orjson.dumps(head), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1


def embedding_inputs(body: Mapping[str, Any]) -> int:
    """How many texts an embeddings request holds."""
    given = body.get("input")
    if isinstance(given, list) and given and not isinstance(given[0], int):
        return len(given)
    return 1


def _alone(row: IndexRow) -> IndexRow:
    return IndexRow(row.offset, row.length, row.tokens, 0)


def _bucket(tokens: int) -> int:
    """Half powers of two."""
    return 2 * tokens.bit_length() + (tokens >> max(tokens.bit_length() - 2, 0) & 1)


def _positive(value: object) -> int:
    """``value`` when it is a positive integer, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _size(value: object) -> int:
    """Bytes of text in ``value``; an image counts as a fixed number of tokens."""
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, int):
        return _BYTES_PER_TOKEN
    if isinstance(value, list):
        return sum(_size(item) for item in value)
    if isinstance(value, dict):
        if "image_url" in value:
            return _IMAGE_TOKENS * _BYTES_PER_TOKEN
        return sum(_size(item) for item in value.values())
    return 0


def _head(body: Mapping[str, Any]) -> object:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        prompt = body.get("prompt")
        return prompt[:_PREFIX_CHARS] if isinstance(prompt, str) else None
    system = [m for m in messages if isinstance(m, dict) and m.get("role") in _SYSTEM]
    if system:
        return system
    first = messages[0].get("content") if isinstance(messages[0], dict) else None
    return first[:_PREFIX_CHARS] if isinstance(first, str) else None


_SYSTEM = ("system", "developer")
