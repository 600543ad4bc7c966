"""Events in OpenAI's shape, signed so that the official client accepts them."""

import base64

import orjson
import pytest
from openai import InvalidWebhookSignatureError, OpenAI

from gateway.core.clock import SystemClock
from gateway.schemas.webhooks import Event, secret_key, signed_headers

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123").decode()


def test_the_official_client_accepts_it() -> None:
    """Unwrap checks the signature and finds the type; another secret or body is refused."""
    body = Event("batch.completed", "batch_1", 1_700_000_000).to_json()
    headers = signed_headers(SECRET, "evt_1", int(SystemClock().now()), body)
    with OpenAI(api_key="k", webhook_secret=SECRET) as client:
        event = client.webhooks.unwrap(body, headers)
        assert event.type == "batch.completed"
        assert event.data.id == "batch_1"
        with pytest.raises(InvalidWebhookSignatureError):
            client.webhooks.unwrap(body + b" ", headers)
        other = "whsec_" + base64.b64encode(b"another key of 20 by").decode()
        with pytest.raises(InvalidWebhookSignatureError):
            client.webhooks.unwrap(body, headers, secret=other)


def test_an_event_has_one_id() -> None:
    """The same for the same end, another for another."""
    event = Event("batch.completed", "batch_1", 5)
    assert event.id == Event("batch.completed", "batch_1", 6).id
    assert event.id != Event("batch.failed", "batch_1", 5).id
    assert orjson.loads(event.to_json()) == {
        "id": event.id,
        "object": "event",
        "created_at": 5,
        "type": "batch.completed",
        "data": {"id": "batch_1"},
    }


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_AAAA", "whsec_%%%", SECRET[6:]])
def test_a_weak_secret_is_none(secret: str) -> None:
    """It begins with whsec_ and has 16 bytes or more."""
    with pytest.raises(ValueError, match="whsec_"):
        secret_key(secret)
