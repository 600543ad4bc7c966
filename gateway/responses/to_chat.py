"""A request of the Responses API as one of chat completions."""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.responses.messages import chat_messages, unsupported
from gateway.schemas.requests import wrong_type

Json = dict[str, Any]
#: Members whose meaning ends here, or that are written otherwise below.
_OWN = frozenset(
    {
        "background",
        "background_options",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "previous_response_id",
        "reasoning",
        "store",
        "stream",
        "stream_options",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "truncation",
    }
)
_LOGPROBS = "message.output_text.logprobs"


def chat_request(members: Mapping[str, Any], items: Iterable[Mapping[str, Any]]) -> Json:
    """The chat request that asks for the same; members of vendors go along.

    ``items`` are those of the conversation so far and of ``input``. Raises InvalidRequest for what
    chat completions cannot do, such as tools that the target would run.
    """
    chat = {name: value for name, value in members.items() if name not in _OWN}
    chat["messages"] = chat_messages(members.get("instructions"), items)
    limit = members.get("max_output_tokens")
    if limit is not None:
        # Every server knows this name; those that want the newer one have the endpoint itself.
        chat["max_tokens"] = limit
    reasoning = members.get("reasoning") or {}
    if reasoning.get("effort") is not None:
        chat["reasoning_effort"] = reasoning["effort"]
    _add_format(chat, members.get("text") or {})
    _add_logprobs(chat, members)
    _add_tools(chat, members)
    return chat


def _add_format(chat: Json, text: Mapping[str, Any]) -> None:
    wanted = text.get("format")
    if isinstance(wanted, dict) and wanted.get("type") not in (None, "text"):
        if wanted["type"] == "json_schema":
            schema = {name: value for name, value in wanted.items() if name != "type"}
            chat["response_format"] = {"type": "json_schema", "json_schema": schema}
        else:
            chat["response_format"] = wanted
    if text.get("verbosity") is not None:
        chat["verbosity"] = text["verbosity"]


def _add_logprobs(chat: Json, members: Mapping[str, Any]) -> None:
    top = members.get("top_logprobs")
    if top or _LOGPROBS in (members.get("include") or ()):
        chat["logprobs"] = True
        if top:
            chat["top_logprobs"] = top


def _add_tools(chat: Json, members: Mapping[str, Any]) -> None:
    tools = [_tool(tool, f"tools[{at}]") for at, tool in enumerate(members.get("tools") or ())]
    choice = members.get("tool_choice")
    if isinstance(choice, dict):
        kind = choice.get("type")
        if kind == "function":
            choice = {"type": "function", "function": {"name": choice.get("name")}}
        elif kind == "allowed_tools":
            allowed = choice.get("tools")
            names = [t.get("name") for t in _objects(allowed)]
            tools = [tool for tool in tools if tool["function"]["name"] in names]
            choice = choice.get("mode")
        else:
            unsupported("tool_choice", kind)
    if tools:
        chat["tools"] = tools
    if tools and choice is not None:
        chat["tool_choice"] = choice
    if not tools:
        chat.pop("parallel_tool_calls", None)


def _tool(tool: Mapping[str, Any], place: str) -> Json:
    if tool.get("type") != "function":
        unsupported(f"{place}.type", tool.get("type"))
    if not isinstance(tool.get("name"), str):
        wrong_type(f"{place}.name", "a string")
    function = {name: value for name, value in tool.items() if name != "type" and value is not None}
    return {"type": "function", "function": function}


def _objects(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
