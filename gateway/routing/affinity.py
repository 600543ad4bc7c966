"""Where a conversation belongs: its key, and the targets in its own order.

No state is shared: every process finds the same home for a key by rendezvous hashing. What a
process saw itself, a conversation that had to go elsewhere, it remembers on top of that.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any, Protocol, TypeVar
from zlib import crc32

_SESSION = b"x-headway-session"
_NAMED = ("prompt_cache_key", "user")
_PART = 1024  # characters of a text that count
_REMEMBERED = 16_384
_GOLDEN = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1


class _Weighted(Protocol):
    @property
    def seed(self) -> int:
        """A number of its own."""

    @property
    def weight(self) -> float:
        """Its share."""


Place = TypeVar("Place", bound=_Weighted)


def affinity_key(
    tenant: str, members: Mapping[str, Any], headers: Mapping[bytes, bytes]
) -> int | None:
    """The number of the conversation a call belongs to; None when nothing tells.

    The session header, ``prompt_cache_key`` and ``user``, in this order; else the beginning of the
    prompt up to the first message of the user, which stays as a conversation grows. Tenants never
    share a conversation.
    """
    named = headers.get(_SESSION)
    if named is None:
        for member in _NAMED:
            value = members.get(member)
            if isinstance(value, str) and value:
                named = value.encode("utf-8", "surrogatepass")
                break
    if named is not None:
        return crc32(named, crc32(tenant.encode()))
    start = _beginning(members)
    return None if start is None else crc32(start, crc32(tenant.encode()))


def _beginning(members: Mapping[str, Any]) -> bytes | None:
    messages = members.get("messages")
    if not isinstance(messages, list):
        prompt = members.get("prompt")
        return _text(prompt) if isinstance(prompt, str) and prompt else None
    parts = []
    for message in messages:
        if isinstance(message, dict):
            parts.append(_text(message.get("content")))
            if message.get("role") == "user":
                break
    return b"\n".join(parts) if parts else None


def _text(content: Any) -> bytes:
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        content = "".join(text for text in texts if isinstance(text, str))
    if not isinstance(content, str):
        return b""
    return content[:_PART].encode("utf-8", "surrogatepass")


def in_order(key: int, places: Sequence[Place]) -> list[Place]:
    """``places``, the home of ``key`` first; each is home to a share of the keys by its weight.

    Taking a place away moves only the keys whose home it was.
    """
    return sorted(places, key=lambda place: _score(key, place), reverse=True)


def home_of(key: int, places: Sequence[Place]) -> Place:
    """The first of ``in_order``, without sorting."""
    return max(places, key=lambda place: _score(key, place))


def _score(key: int, place: _Weighted) -> float:
    mixed = ((key ^ place.seed) * _GOLDEN) & _MASK
    mixed = ((mixed ^ (mixed >> 29)) * _GOLDEN) & _MASK
    return -place.weight / log(((mixed >> 11) + 0.5) / 2**53)


class DisplacedConversations:
    """Conversations that were last served away from their home, the newest so many of them."""

    def __init__(self, most: int = _REMEMBERED) -> None:
        self._most = most
        self._where: dict[int, str] = {}

    def where(self, key: int) -> str | None:
        """The target that holds the conversation, when that is not its home."""
        return self._where.get(key) if self._where else None

    def served(self, key: int, target: str, *, at_home: bool) -> None:
        """The conversation goes to ``target``."""
        if self._where:
            self._where.pop(key, None)
        if not at_home:
            self._where[key] = target
            if len(self._where) > self._most:
                del self._where[next(iter(self._where))]
