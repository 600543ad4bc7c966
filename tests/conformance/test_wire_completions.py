"""Completions: prompts of every form, ``n``, ``echo``, ``logprobs``; plain and streamed."""

from typing import Any

import pytest

from tests.support.interactive import wire
from tests.support.scripts import Sse, answer
from tests.support.upstream import ScriptedUpstream

PATH = "/v1/completions"
LOGPROBS = {"tokens": ["a"], "token_logprobs": [-0.5], "top_logprobs": None, "text_offset": [0]}


def _completion(**choice: Any) -> dict[str, Any]:
    only = {"index": 0, "text": "a", "finish_reason": "stop", "logprobs": None, **choice}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    head = {"id": "x", "object": "text_completion", "created": 1_760_000_000, "model": "m"}
    return {**head, "choices": [only], "usage": usage}


@pytest.mark.parametrize(
    ("prompt", "choices"),
    [("a b", 2), (["a", "b"], 4), ([1, 2, 3], 2), ([[1, 2], [3], [4]], 6)],
)
def test_prompts_times_n(upstream: ScriptedUpstream, prompt: Any, choices: int) -> None:
    """One answer for each prompt and each of ``n``, streamed as well; the prompt as it was."""
    with wire(upstream) as there:
        whole = there.ok(PATH, "completion", prompt=prompt, n=2, max_tokens=2)
        events = there.events(PATH, "completion", prompt=prompt, n=2, max_tokens=2)
        sdk = there.client.completions.create(model="m", prompt=prompt, n=2)
        assert there.sent()["prompt"] == prompt
    assert len(whole["choices"]) == choices
    assert len(sdk.choices) == choices
    ends = [c["index"] for e in events for c in e["choices"] if c["finish_reason"]]
    assert sorted(ends) == list(range(choices))


def test_echo_and_logprobs(upstream: ScriptedUpstream) -> None:
    """Both are the target's business, and so are members of vendors."""
    members = {"echo": True, "logprobs": 3, "suffix": "x", "best_of": 2, "ignore_eos": True}
    upstream.enqueue(answer(_completion(logprobs=LOGPROBS)))
    with wire(upstream) as there:
        whole = there.ok(PATH, "completion", prompt="a", **members)
        assert there.sent() == {"model": "m", "prompt": "a", **members}
    assert whole["choices"][0]["logprobs"] == LOGPROBS


def test_streamed_logprobs(upstream: ScriptedUpstream) -> None:
    """They come with their text."""
    chunk = {**_completion(logprobs=LOGPROBS), "usage": None}
    upstream.enqueue(Sse([chunk]))
    with wire(upstream) as there:
        assert there.events(PATH, "completion", prompt="a") == [chunk]


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": {"a": 1}}, "prompt"),
        ({"prompt": ["a", 1]}, "prompt"),
        ({"prompt": [[1], "a"]}, "prompt"),
        ({"prompt": "a", "n": 0}, "n"),
        ({"prompt": "a", "max_tokens": -1}, "max_tokens"),
        ({"prompt": "a", "stream_options": {}}, "stream_options"),
    ],
)
def test_refused(upstream: ScriptedUpstream, members: dict[str, Any], param: str) -> None:
    """400 that names the member; the target is not asked."""
    with wire(upstream) as there:
        got = there.refused(PATH, **members)
    assert (got.status_code, got.json()["error"]["param"]) == (400, param)
    assert not upstream.calls()
