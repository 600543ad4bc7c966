"""Bodies of every odd shape: the caller is told, nothing breaks."""

import random
from typing import Any

import orjson
import pytest

from gateway.core.errors import ClientError
from gateway.jobs.responses import _resolved, _with_ids
from gateway.responses.forms import chat_form, native_form
from gateway.responses.shape import new_response
from gateway.schemas.job import deferred_response
from gateway.schemas.responses import parse_response

TEXT = {"type": "input_text", "text": "x"}
TOOL = {"type": "function", "name": "f", "parameters": {}, "strict": True}
WHOLE: dict[str, Any] = {
    "model": "m",
    "input": [
        {"role": "user", "content": "a"},
        {
            "type": "message",
            "role": "user",
            "content": [
                TEXT,
                {"type": "input_image", "image_url": "u", "detail": "low"},
                {"type": "input_file", "file_data": "d", "filename": "f"},
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "n"}],
        },
        {"type": "reasoning", "id": "r", "content": [{"type": "reasoning_text", "text": "t"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": [{"type": "input_text", "text": "x"}],
        },
        {"type": "item_reference", "id": "r"},
    ],
    "instructions": "i",
    "tools": [TOOL],
    "tool_choice": {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "f"}],
    },
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}, "verbosity": "low"},
    "reasoning": {"effort": "low"},
    "include": ["message.output_text.logprobs"],
    "metadata": {"a": "b"},
    "background_options": {"completion_window": "soonest"},
    "top_logprobs": 2,
    "stream_options": None,
}
PLAIN: tuple[Any, ...] = (None, 0, -1, 2.5, True, "", "x")
NESTED: tuple[Any, ...] = ([], {}, [[]], [{}], {"type": []}, {"a": {}}, ["x", 1])


def mutated(value: Any, draw: random.Random) -> Any:
    """``value`` with something odd in one place."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        name = draw.choice(list(value))
        return {**value, name: mutated(value[name], draw)}
    if isinstance(value, list) and value and draw.random() < 0.9:
        place = draw.randrange(len(value))
        return [*value[:place], mutated(value[place], draw), *value[place + 1 :]]
    return draw.choice(PLAIN + NESTED)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_breaks(seed: int) -> None:
    """Read, translated both ways, listed: ClientError or a result, and one that can be written."""
    draw, accepted = random.Random(seed), 0
    for _ in range(300):
        body = WHOLE
        for _ in range(draw.randint(1, 3)):
            body = mutated(body, draw)
        try:
            asked = parse_response(orjson.dumps(body))
            items = _resolved(asked.input, [{"id": "r"}])
            orjson.dumps(_with_ids(asked.input))
            orjson.dumps(native_form(asked.members, items, stream=False))
            orjson.dumps(new_response("resp_1", 1, asked.members, status="x", tier=None))
            deferred_response(asked, items)
            orjson.dumps(chat_form(asked.members, items, stream=False))
        except ClientError:
            continue
        accepted += 1
    assert 0 < accepted < 300
