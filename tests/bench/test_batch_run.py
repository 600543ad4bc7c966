"""The batch's input and the check of its output."""

import json
from typing import Any

import pytest

from gateway.bench.batch_run import check_output, input_file
from gateway.bench.corpus import prompts
from gateway.core.errors import BenchmarkFailed

SENT = input_file(prompts(3), "m", 4)


def line(name: str, **changes: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9}
    body = {"choices": [{"message": {"content": f"about {name}"}}], "usage": usage}
    response = {"status_code": 200, "request_id": "r", "body": {**body, **changes}}
    return {"id": "x", "custom_id": name, "response": response, "error": None}


def received(*lines: dict[str, Any]) -> bytes:
    return "".join(json.dumps(entry) + "\n" for entry in lines).encode()


NAMES = [prompt.name for prompt in prompts(3)]


def test_the_input_is_one_request_a_line() -> None:
    """Exact Batch API lines, named after what they ask about."""
    lines = [json.loads(text) for text in SENT.splitlines()]
    assert [entry["custom_id"] for entry in lines] == NAMES
    assert {entry["url"] for entry in lines} == {"/v1/chat/completions"}


def test_a_good_output_passes_in_any_order() -> None:
    """Order is free; custom_id is the link."""
    answers = check_output(SENT, received(*(line(name) for name in reversed(NAMES))))
    assert answers.keys() == set(NAMES)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([line(NAMES[0]), line(NAMES[1])], "no output line"),
        ([line(NAMES[0]), line(NAMES[0])], "twice"),
        ([line("stranger")], "never sent"),
        ([{**line(NAMES[0]), "error": {"code": "x"}}], "not a success"),
        ([line(NAMES[0], choices=[{"message": {"content": ""}}])], "no text"),
        ([line(NAMES[0], usage={"completion_tokens": 3})], "length"),
    ],
)
def test_anything_amiss_is_found(lines: list[dict[str, Any]], message: str) -> None:
    """A missing, doubled, foreign, failed, empty or short line fails the run."""
    with pytest.raises(BenchmarkFailed, match=message):
        check_output(SENT, received(*lines))
