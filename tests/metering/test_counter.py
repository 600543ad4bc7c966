"""Tokens are counted from what the target says, else from what it sent."""

import timeit
import tracemalloc
from time import thread_time
from typing import Any

import orjson
import pytest

from gateway.core.usage import Usage
from gateway.metering.counter import StreamMeter, _content_bytes, answer_usage, estimate_tokens


def delta(content: str = "word ", **members: Any) -> bytes:
    """One chunk of a chat completion."""
    choice = {"index": 0, "delta": {"content": content, **members}, "finish_reason": None}
    return orjson.dumps(
        {
            "id": "chatcmpl-0123456789",
            "object": "chat.completion.chunk",
            "created": 1_796_014_800,
            "model": "m1",
            "choices": [choice],
            "usage": None,
        }
    )


def usage_chunk(choices: list[Any], **usage: Any) -> bytes:
    """A chunk with usage."""
    return b"data: " + orjson.dumps(
        {"object": "chat.completion.chunk", "choices": choices, "usage": usage}
    )


def test_met_01_usage_of_a_usage_only_chunk() -> None:
    """107 and 20 are reported in a chunk without choices: the record says so, not estimated."""
    meter = StreamMeter(400, 0.0)
    assert meter.feed(delta(), 1.0)
    assert not meter.feed(usage_chunk([], prompt_tokens=107, completion_tokens=20), 2.0)
    assert meter.usage() == Usage(107, 20)


def test_met_02_usage_beside_a_choice() -> None:
    """Usage in the last chunk beside an empty delta is found, with its details."""
    meter = StreamMeter(400, 0.0)
    meter.feed(delta(), 1.0)
    chunk = usage_chunk(
        [{"index": 0, "delta": {}}],
        prompt_tokens=16111,
        completion_tokens=2,
        prompt_tokens_details={"cached_tokens": 15872},
        completion_tokens_details={"reasoning_tokens": 1},
    )
    assert not meter.feed(chunk, 2.0)
    assert meter.usage() == Usage(16111, 2, 15872, 1)


def test_met_04_a_stream_counts_as_the_plain_answer() -> None:
    """The same report gives the same record both ways."""
    report = {"prompt_tokens": 9, "completion_tokens": 4}
    meter = StreamMeter(36, 0.0)
    meter.feed(usage_chunk([], **report), 1.0)
    assert meter.usage() == answer_usage({"choices": [], "usage": report}, 36)


def test_met_05_a_stream_cut_after_30_chunks() -> None:
    """Thirty one-token chunks are 30 to 32 tokens and an estimate, with a prompt above 0."""
    meter = StreamMeter(120, 0.0)
    for number in range(30):
        meter.feed(delta(f"token-{number} "), float(number))
    usage = meter.usage(complete=False)
    assert 30 <= usage.completion <= 32
    assert usage.prompt > 0
    assert usage.estimated


def test_met_12_no_usage_at_all() -> None:
    """Twenty words without a report: an estimate, both counts above 0."""
    meter = StreamMeter(80, 0.0)
    for _ in range(20):
        meter.feed(delta(), 1.0)
    usage = meter.usage()
    assert usage.estimated
    assert usage.prompt > 0
    assert usage.completion == 20
    plain = answer_usage({"choices": [{"message": {"content": "word " * 20}}]}, 80)
    assert plain.estimated
    assert plain.prompt > 0
    assert plain.completion > 0


def test_an_explicit_zero_is_respected() -> None:
    """A target that reports 0 means 0."""
    meter = StreamMeter(80, 0.0)
    meter.feed(usage_chunk([], prompt_tokens=0, completion_tokens=0), 1.0)
    assert meter.usage() == Usage(0, 0)


@pytest.mark.parametrize("odd", [None, "7", 1.5, -5, True, 1e30, 2**40])
@pytest.mark.parametrize("lacks", ["prompt_tokens", "completion_tokens"])
def test_an_unusable_figure_is_estimated(lacks: str, odd: Any) -> None:
    """What is no count is counted by us, streamed or not, and the other figure stays."""
    report = {"prompt_tokens": 30, "completion_tokens": 40, lacks: odd}
    meter = StreamMeter(80, 0.0)
    meter.feed(delta("word " * 20), 1.0)
    meter.feed(usage_chunk([], **report), 1.0)
    body = {"choices": [{"message": {"content": "word " * 20}}], "usage": report}
    prompt, completion = (20, 40) if lacks == "prompt_tokens" else (30, 25)
    expected = Usage(prompt, completion, estimated=True)
    assert meter.usage() == answer_usage(body, 80) == expected


def test_a_report_without_a_prompt_is_completed() -> None:
    """A figure that is left out is estimated; vectors have no completion and need none."""
    body = {"choices": [{"message": {"content": "ab"}}], "usage": {"completion_tokens": 5}}
    assert answer_usage(body, 80) == Usage(20, 5, estimated=True)
    vectors = {"data": [], "usage": {"prompt_tokens": 7}}
    assert answer_usage(vectors, 80) == Usage(7, 0)


def test_a_running_report_does_not_hide_what_came_after_it() -> None:
    """Of a cut stream the larger of report and count is taken, and marked."""
    meter = StreamMeter(80, 0.0)
    meter.feed(usage_chunk([], prompt_tokens=21, completion_tokens=0), 0.5)
    for _ in range(5):
        meter.feed(delta(), 1.0)
    assert meter.usage(complete=False) == Usage(21, 5, estimated=True)


@pytest.mark.parametrize(
    "event",
    [
        delta(""),
        delta("", role="assistant"),
        b": keep-alive",
        b"[DONE]",
        b"not json",
        usage_chunk([{"index": 0, "delta": {}}]),
    ],
)
def test_what_is_no_content(event: bytes) -> None:
    """A role, an empty delta, a comment and the end are no first token."""
    meter = StreamMeter(10, 0.0)
    assert not meter.feed(event, 1.0)
    assert meter.timing.ttft_s is None


@pytest.mark.parametrize(
    "event",
    [
        delta("", tool_calls=[{"index": 0, "function": {"name": "look", "arguments": ""}}]),
        delta("", reasoning_content="hm"),
        delta("", refusal="no"),
        b'{"choices": [{"text": "x"}]}',
    ],
)
def test_what_is_content(event: bytes) -> None:
    """Text, tool calls, refusals and reasoning are."""
    meter = StreamMeter(10, 0.0)
    assert meter.feed(event, 0.25)
    assert meter.timing.ttft_s == 0.25


def test_text_that_looks_like_usage_is_text() -> None:
    """An answer may quote our own wire format."""
    meter = StreamMeter(10, 0.0)
    assert meter.feed(delta('{"usage": {"prompt_tokens": 999}}'), 1.0)
    assert meter.usage().prompt == estimate_tokens(10)


def test_a_long_chunk_counts_by_length() -> None:
    """A target that sends paragraphs is not counted as one token each."""
    meter = StreamMeter(10, 0.0)
    meter.feed(delta("a" * 400), 1.0)
    assert meter.usage().completion == 100


def test_an_event_costs_little() -> None:
    """Feeding stays within microseconds, so that the relay is not held up."""
    meter = StreamMeter(10, 0.0)
    event = delta()
    costs = timeit.repeat(lambda: meter.feed(event, 1.0), number=2000, repeat=5, timer=thread_time)
    assert min(costs) / 2000 < 15e-6


@pytest.mark.parametrize(
    "text",
    [
        b'{"content": "%b"}' % (b"x" * 1_000_000),
        b'{"content":"%b"}' % (b"\\n" * 500_000),
        b'{"function":{"arguments":"%b"}}' % (b'{\\"a\\":1}' * 100_000),
        b'{"content": "%b' % (b"x" * 1_000_000),
        b'{"content":""%b}' % (b',"content":""' * 80_000),
    ],
)
def test_a_long_event_takes_no_memory(text: bytes) -> None:
    """However its text is written: less than a tenth of its own size."""
    meter = StreamMeter(10, 0.0)
    tracemalloc.start()
    try:
        meter.feed(text, 1.0)
        assert tracemalloc.get_traced_memory()[1] < len(text) / 10
    finally:
        tracemalloc.stop()


def test_a_long_answer_without_usage_takes_little_memory() -> None:
    """A writer sets eight bytes a character aside; no more than that."""
    body = {"choices": [{"message": {"content": "x" * 1_000_000}}]}
    tracemalloc.start()
    try:
        assert answer_usage(body, 10).completion == 250_000
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_half_a_pair_is_content() -> None:
    """A token may end in the middle of a character; the answer is counted all the same."""
    meter = StreamMeter(10, 0.0)
    assert meter.feed(b'{"choices":[{"delta":{"content":"\\ud83d"}}]}', 1.0)
    meter.feed(b'{"usage":{"prompt_tokens":1,"completion_tokens":2},"x":"\\ud83d"}', 2.0)
    assert meter.usage() == Usage(1, 2)
    assert answer_usage({"choices": [{"message": {"content": "\ud83d"}}]}, 4).completion > 0


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (b'"content": "abc"', 3),
        (rb'"content":"a\"b"', 4),
        (rb'"content":"\\", "x":"y"', 2),
        (rb'"content": "\\\"a"', 5),
        (b'"content": ""', 0),
        (b'"content": "abc', 0),
        (rb'"content": "abc\"', 0),
        (rb'"arguments":"{\"content\":\"x\"}"', 19),
    ],
)
def test_the_length_of_a_text(text: bytes, size: int) -> None:
    """Up to the quote that ends it, as it is written."""
    assert _content_bytes(b"{%b}" % text) == size
