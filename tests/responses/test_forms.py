"""What a target is asked for."""

from typing import Any

from gateway.responses.forms import chat_form, native_form, row_items

MEMBERS = {"model": "m", "input": "x", "store": True, "metadata": {"a": "b"}, "top_k": 3}


def test_chat() -> None:
    """For targets without the endpoint."""
    assert chat_form(MEMBERS, row_items(MEMBERS), stream=True) == {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "top_k": 3,
        "stream": True,
    }


def test_native() -> None:
    """The target keeps nothing; ids of others and thoughts it cannot read stay here."""
    items: list[dict[str, Any]] = [
        {"type": "message", "id": "msg_1", "role": "user", "content": "x"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "sealed"},
    ]
    assert native_form(MEMBERS, items, stream=False) == {
        "model": "m",
        "input": [{"type": "message", "role": "user", "content": "x"}, items[2]],
        "store": False,
        "top_k": 3,
        "stream": False,
    }
