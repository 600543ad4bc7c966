"""Webhook events in OpenAI's shape, signed as standardwebhooks.com says."""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass

import orjson

SECRET_PREFIX = "whsec_"  # noqa: S105 - what every secret begins with
EVENTS = tuple(
    f"{kind}.{end}"
    for kind in ("batch", "job")
    for end in ("completed", "failed", "cancelled", "expired")
)
_LEAST_KEY = 16


@dataclass(frozen=True, slots=True)
class Event:
    """Something ended: ``type`` such as ``batch.completed``, the object's id, Unix seconds."""

    type: str
    object_id: str
    created_at: int

    @property
    def id(self) -> str:
        """The same for the same event, whoever makes it and how often."""
        digest = hashlib.sha256(f"{self.type}/{self.object_id}".encode()).hexdigest()
        return f"evt_{digest[:32]}"

    def to_json(self) -> bytes:
        """The body of its webhook."""
        event = {
            "id": self.id,
            "object": "event",
            "created_at": self.created_at,
            "type": self.type,
            "data": {"id": self.object_id},
        }
        return orjson.dumps(event)


def secret_key(secret: str) -> bytes:
    """The key in ``whsec_…``. Raises ValueError when it is not one."""
    encoded = secret.removeprefix(SECRET_PREFIX)
    try:
        key = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        key = b""
    if encoded == secret or len(key) < _LEAST_KEY:
        raise ValueError(
            f"a webhook secret is {SECRET_PREFIX} and base64 of {_LEAST_KEY} bytes or more"
        )
    return key


def signed_headers(secret: str, event_id: str, now: int, body: bytes) -> dict[str, str]:
    """The headers of one delivery made at ``now`` (Unix seconds)."""
    signed = b"%s.%d.%s" % (event_id.encode(), now, body)
    digest = hmac.new(secret_key(secret), signed, hashlib.sha256).digest()
    return {
        "content-type": "application/json",
        "user-agent": "headway-webhooks/1",
        "webhook-id": event_id,
        "webhook-timestamp": str(now),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }
