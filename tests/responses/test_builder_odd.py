"""Answers of every odd shape: the target failed, nothing else breaks."""

import random
from contextlib import suppress
from typing import Any

import orjson
import pytest

from gateway.responses.builder import MALFORMED, ResponseBuilder, whole_response
from gateway.responses.replay import Replay
from gateway.responses.shape import new_response, owned
from tests.responses.test_to_chat_odd import mutated
from tests.support.responses import native_response

BEGUN = new_response("resp_1", 5, {"model": "m", "input": "x"}, status="in_progress", tier=None)
ENTRY = {"token": "a", "logprob": -1, "bytes": [97], "top_logprobs": [{"token": "b"}]}
CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SAID = {"content": "a", "reasoning_content": "hm", "refusal": "n", "tool_calls": [CALL]}
CHOICE = {"index": 0, "finish_reason": "stop", "logprobs": {"content": [ENTRY]}}
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}}


@pytest.mark.parametrize("seed", range(10))
def test_chat_answers(seed: int) -> None:
    """Whole and in chunks: one of MALFORMED, or a response that can be written."""
    draw = random.Random(seed)
    for _ in range(500):
        body: Any = {"model": "m", "choices": [{**CHOICE, "message": SAID}], "usage": USAGE}
        chunk: Any = {"model": "m", "choices": [{**CHOICE, "delta": SAID}], "usage": USAGE}
        for _ in range(draw.randint(1, 3)):
            body, chunk = mutated(body, draw), mutated(chunk, draw)
        with suppress(*MALFORMED):
            orjson.dumps(whole_response(BEGUN, body, 9))
        builder = ResponseBuilder(BEGUN)
        with suppress(*MALFORMED):
            orjson.dumps([*builder.start(), *builder.feed(chunk), *builder.finish(9)])


@pytest.mark.parametrize("seed", range(10))
def test_responses_of_targets(seed: int) -> None:
    """What a target with the endpoint made is told again as it is, however odd its items are."""
    draw = random.Random(seed)
    call = {"id": "fc", "type": "function_call", "name": "f", "call_id": "c", "arguments": "{}"}
    for _ in range(500):
        response = native_response("hi")
        items = [*response["output"], call, {"type": "web_search_call"}]
        for _ in range(draw.randint(1, 3)):
            items = mutated(items, draw)
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            continue
        events = Replay().ended(owned({**response, "output": items}, BEGUN))
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        orjson.dumps(events)
