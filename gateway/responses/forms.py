"""What a target is asked for: a response if it has the endpoint, else a chat completion."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.responses.to_chat import chat_request
from gateway.schemas.responses import KEPT_HERE, input_items

Json = dict[str, Any]


def chat_form(
    members: Mapping[str, Any], items: Sequence[Mapping[str, Any]], *, stream: bool
) -> Json:
    """The members of a chat call. Raises InvalidRequest for what chat cannot do."""
    return {**chat_request(members, items), "stream": stream}


def native_form(
    members: Mapping[str, Any], items: Sequence[Mapping[str, Any]], *, stream: bool
) -> Json:
    """The members of a call that the target keeps nothing of: the conversation goes with it."""
    sent = {name: value for name, value in members.items() if name not in KEPT_HERE}
    kept = [_nameless(item) for item in items if _is_told(item)]
    return {**sent, "input": kept, "store": False, "stream": stream}


def row_items(members: Mapping[str, Any]) -> list[Json]:
    """The items of a call that goes on from no other one. Raises InvalidRequest."""
    return input_items(members.get("input"))


def _is_told(item: Mapping[str, Any]) -> bool:
    """Thoughts without their sealed form mean nothing to a target that did not keep them."""
    return item.get("type") != "reasoning" or bool(item.get("encrypted_content"))


def _nameless(item: Mapping[str, Any]) -> Json:
    """Ids are ours, or those of another target; thoughts are known by theirs."""
    named = item.get("type") == "reasoning"
    return {name: value for name, value in item.items() if named or name != "id"}
