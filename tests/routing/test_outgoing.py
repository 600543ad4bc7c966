"""The body a target gets."""

from typing import Any

import orjson

from gateway.routing.outgoing import DENIED, outgoing_body, without_denied
from gateway.schemas.chat import parse_chat
from tests.support.routes import a_route


def sent(members: dict[str, Any], *, kind: str = "vllm", **how: Any) -> dict[str, Any]:
    """The parsed body for a target of ``kind``."""
    asks = bool(how.pop("asks_usage", True))
    route = a_route("t", "their-m", kind, rank=how.pop("rank", {}), asks_usage=asks)
    body: dict[str, Any] = orjson.loads(
        outgoing_body(members, route, stream=how.pop("stream", False), **how)
    )
    return body


def test_unknown_members_pass() -> None:
    """Vendor members stay as they are; only the model is renamed."""
    members = {"model": "m", "top_k": 5, "chat_template_kwargs": {"a": [1, None, "é"]}}
    assert sent(members) == {**members, "model": "their-m"}


def test_denied_members_go() -> None:
    """What steers the gateway or its targets is dropped, wrapped or not; the input stays."""
    members = {"model": "m", **dict.fromkeys(DENIED, "x"), "metadata": {"api_base": "x", "k": "v"}}
    kept = without_denied(members)
    assert kept == {"model": "m", "metadata": {"k": "v"}}
    assert members["metadata"] == {"api_base": "x", "k": "v"}


def test_labels_stay() -> None:
    """``metadata`` loses what names a target or carries a credential, and nothing else."""
    labels = {"priority": "high", "k": "v"}
    assert without_denied({"metadata": {**labels, "headers": "x"}}) == {"metadata": labels}
    assert without_denied({"extra_body": {"priority": 1, "top_k": 2}}) == {
        "extra_body": {"top_k": 2}
    }


def test_a_long_integer_stays_as_it_is() -> None:
    """A float would be another number."""
    body = parse_chat(b'{"model":"m","seed":123456789012345678901,"messages":[{"role":"user"}]}')
    text = outgoing_body(body.members, a_route("t", "m", "vllm"), stream=False)
    assert b'"seed":123456789012345678901' in text


def test_streams_are_asked_for_usage() -> None:
    """The client's other options are kept."""
    body = sent({"model": "m", "stream_options": {"include_obfuscation": False}}, stream=True)
    assert body["stream"] is True
    assert body["stream_options"] == {"include_obfuscation": False, "include_usage": True}


def test_some_servers_do_not_know_stream_options() -> None:
    """They get none, not even the client's."""
    members = {"model": "m", "stream_options": {"include_usage": True}}
    assert "stream_options" not in sent(members, stream=True, asks_usage=False)


def test_the_rank_is_ours() -> None:
    """The client's own is replaced, and dropped where the target gets none."""
    assert sent({"model": "m", "priority": -5}, rank={"priority": 100})["priority"] == 100
    assert "priority" not in sent({"model": "m", "priority": -5})


def test_service_tier() -> None:
    """Providers that bill by the tier get the one really used; engines get none."""
    members = {"model": "m", "service_tier": "priority"}
    assert sent(members, kind="openai", tier="flex")["service_tier"] == "flex"
    assert "service_tier" not in sent(members, kind="vllm", tier="flex")
