"""Client keys: who is calling, and what may they do."""

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gateway.core.errors import ConfigError
from gateway.core.lanes import Lane
from gateway.policy.model import Policy

SIMPLE_KEY_ID = "default"
SIMPLE_TENANT = "default"


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a key. ``models`` is None when every model may be used."""

    key_id: str
    tenant: str
    weight: float = 1.0
    ceiling: Lane = Lane.INTERACTIVE
    models: frozenset[str] | None = None

    def may_use(self, model: str) -> bool:
        """Whether the key may use ``model``."""
        return self.models is None or model in self.models


class KeyRing:
    """All known keys, by digest; the keys themselves are not kept."""

    def __init__(self, callers: dict[bytes, Caller]) -> None:
        self._callers = {digest: (digest, caller) for digest, caller in callers.items()}

    @classmethod
    def from_policy(cls, policy: Policy, settings_key: str | None) -> "KeyRing":
        """The policy's keys and ``settings_key``, the key of a simple set-up.

        Raises ConfigError when two names hold the same key, or a key is empty.
        """
        ring: dict[bytes, Caller] = {}
        canonical = policy.canonical()
        for name, key in policy.keys.items():
            models = None if key.models is None else _with_aliases(key.models, canonical)
            caller = Caller(name, key.tenant, policy.weight(key.tenant), key.ceiling, models)
            if key.key is not None:
                _put(ring, _digest(key.key.get_secret_value()), caller)
            elif key.sha256 is not None:
                _put(ring, bytes.fromhex(key.sha256), caller)
        if settings_key is not None:
            caller = Caller(SIMPLE_KEY_ID, SIMPLE_TENANT, policy.weight(SIMPLE_TENANT))
            _put(ring, _digest(settings_key), caller)
        return cls(ring)

    def __len__(self) -> int:
        return len(self._callers)

    def find(self, token: str) -> Caller | None:
        """The caller that ``token`` belongs to; None: deny.

        Keys are found by SHA-256, so the time of the search says nothing about a key; the digest
        is then compared in constant time.
        """
        digest = _digest(token)
        known, caller = self._callers.get(digest, (b"", None))
        return caller if hmac.compare_digest(known, digest) else None


def _with_aliases(models: Iterable[str], canonical: Mapping[str, str]) -> frozenset[str]:
    """``models``, and every other name of one of them."""
    known = frozenset(models)
    return known | {alias for alias, name in canonical.items() if name in known}


def _digest(token: str) -> bytes:
    token = token.strip()
    if not token:
        return b""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _put(ring: dict[bytes, Caller], digest: bytes, caller: Caller) -> None:
    if not digest:
        raise ConfigError(f"keys.{caller.key_id}: key is empty")
    if digest in ring:
        raise ConfigError(
            f"keys.{caller.key_id}: the same key as keys.{ring[digest].key_id}; "
            "each name needs its own"
        )
    ring[digest] = caller
