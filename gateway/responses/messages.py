"""Input items as chat messages."""

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from gateway.core.errors import InvalidRequest
from gateway.schemas.requests import no_text, wrong_type

Json = dict[str, Any]
_ROLES = {"developer": "system"}
#: A tuple: what clients send as a type may be anything.
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")


def chat_messages(instructions: str | None, items: Iterable[Mapping[str, Any]]) -> list[Json]:
    """The messages that say the same. Raises InvalidRequest for what chat has no words for."""
    messages: list[Json] = []
    if instructions:
        messages.append({"role": "system", "content": instructions})
    thoughts = ""
    for position, item in enumerate(items):
        place, kind = f"input[{position}]", item.get("type")
        if kind == "reasoning":
            thoughts += _thoughts(item, place)
        elif kind == "function_call":
            _add_call(messages, item, place, thoughts)
            thoughts = ""
        else:
            messages.append(_message(item, place))
            thoughts = ""
    return messages


def _message(item: Mapping[str, Any], place: str) -> Json:
    kind = item.get("type")
    if kind == "message":
        role = item["role"]
        if role == "assistant":
            return _assistant(item["content"], f"{place}.content")
        return {
            "role": _ROLES.get(role, role),
            "content": _content(item["content"], f"{place}.content"),
        }
    if kind == "function_call_output":
        call_id = _text(item, "call_id", place)
        content = _content(item.get("output", ""), f"{place}.output")
        return {"role": "tool", "tool_call_id": call_id, "content": content}
    return unsupported(f"{place}.type", kind)


def _assistant(content: Any, place: str) -> Json:
    """What the model said before: text and refusal apart."""
    if isinstance(content, str):
        return {"role": "assistant", "content": content}
    parts = _objects(content, place)
    refusals = [str(part.get("refusal", "")) for part in parts if part.get("type") == "refusal"]
    texts = [part for part in parts if part.get("type") != "refusal"]
    for part in texts:
        if part.get("type") not in _TEXTS:
            unsupported(place, part.get("type"))
    said = "".join(str(part.get("text", "")) for part in texts)
    message: Json = {"role": "assistant", "content": said if texts or not refusals else None}
    if refusals:
        message["refusal"] = "".join(refusals)
    return message


def _add_call(messages: list[Json], item: Mapping[str, Any], place: str, thoughts: str) -> None:
    """Put a call to those of the assistant's turn, or begin one."""
    call = {
        "id": _text(item, "call_id", place),
        "type": "function",
        "function": {
            "name": _text(item, "name", place),
            "arguments": _text(item, "arguments", place),
        },
    }
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    message = messages[-1]
    message.setdefault("tool_calls", []).append(call)
    if thoughts:
        # Models that think between calls want to read on where they were.
        message["reasoning_content"] = message.get("reasoning_content", "") + thoughts


def _content(content: Any, place: str) -> Any:
    """A text stays one, and so do parts that are nothing but text."""
    if isinstance(content, str):
        return content
    parts = [_part(part, f"{place}[{at}]") for at, part in enumerate(_objects(content, place))]
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


def _part(part: Json, place: str) -> Json:
    kind = part.get("type")
    if kind in _TEXTS:
        return {"type": "text", "text": _text(part, "text", place)}
    if kind == "input_image" and part.get("image_url"):
        image = {"url": part["image_url"]}
        if part.get("detail"):
            image["detail"] = part["detail"]
        return {"type": "image_url", "image_url": image}
    if kind == "input_file" and part.get("file_data"):
        names = ("file_data", "filename")
        return {"type": "file", "file": {name: part[name] for name in names if part.get(name)}}
    if kind == "input_audio" and part.get("input_audio"):
        return {"type": "input_audio", "input_audio": part["input_audio"]}
    return unsupported(place, kind)


def _thoughts(item: Mapping[str, Any], place: str) -> str:
    parts = _objects(item.get("content") or [], f"{place}.content")
    return "".join(str(part.get("text", "")) for part in parts)


def _objects(content: Any, place: str) -> list[Json]:
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        wrong_type(place, "a string or an array of objects")
    return content


def _text(item: Mapping[str, Any], name: str, place: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        no_text(f"{place}.{name}", value)
    return value


def unsupported(place: str, kind: object) -> NoReturn:
    """Raise InvalidRequest for a ``kind`` that the targets of the model do not know."""
    raise InvalidRequest(
        f"'{place}': '{str(kind)[:64]}' is not supported by the model's targets.",
        param=place,
        code="unsupported_value",
    )
