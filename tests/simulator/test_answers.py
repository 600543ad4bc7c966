"""Answers in the OpenAI shape."""

import json
from typing import Any

from gateway.simulator.answers import Answer
from gateway.simulator.requests import Wanted


def _answer(*, chat: bool, usage: bool = False) -> Answer:
    return Answer(Wanted(chat, 10, 20, "length", 0, True, usage), "m", 1)


def _events(stream: bytes) -> list[dict[str, Any]]:
    return [json.loads(event[6:]) for event in stream.split(b"\n\n")[:-1] if b"[DONE]" not in event]


def test_a_stream_says_what_the_plain_answer_says() -> None:
    """Word by word or many at once, past the last word of the text."""
    answer = _answer(chat=True, usage=True)
    stream = answer.opening() + b"".join(answer.words(at, at + 1) for at in range(10))
    events = _events(stream + answer.words(10, 20) + answer.closing())
    text = "".join(e["choices"][0]["delta"].get("content", "") for e in events if e["choices"])
    whole = json.loads(answer.whole())
    assert text == whole["choices"][0]["message"]["content"]
    assert events[-1]["usage"] == whole["usage"]
    assert whole["usage"]["total_tokens"] == 30
    assert events[-2]["choices"][0]["finish_reason"] == "length"
    assert {e["id"] for e in events} == {whole["id"]}


def test_completions_have_texts() -> None:
    """Without a role, and without usage when nobody asked."""
    answer = _answer(chat=False)
    assert answer.opening() == b""
    events = _events(answer.words(0, 2) + answer.closing())
    assert events[0]["choices"][0]["text"] == " the model"
    assert not any(event.get("usage") for event in events)
    assert json.loads(answer.whole())["object"] == "text_completion"
