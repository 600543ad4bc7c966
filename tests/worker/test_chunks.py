"""The events of a stream."""

from typing import Any

import orjson

from gateway.worker.answers import Answer, usage_of
from gateway.worker.chunks import DONE, Transcript
from gateway.worker.requests import Generation
from gateway.worker.sampling import SamplingParams
from gateway.worker.sequence import Event, Sequence, TokenLogprob
from tests.support.contract import checked


def _transcript(*, chat: bool = True, echo: bool = False, usage: bool = True) -> Transcript:
    answer = Answer(chat=chat, model="m", created=2_000_000_000, pieces=lambda t: bytes([t]))
    generation = Generation(chat, ((1,),), ("p",), 2, 9, SamplingParams(), None, True, usage, echo)
    return Transcript(answer, generation)


def _event(text: str, place: int = 0, **rest: Any) -> Event:
    return Event(Sequence([1], 5, SamplingParams(), None, print, place=place), text, 1, **rest)


def _read(raw: bytes) -> list[dict[str, Any]]:
    events = raw.split(b"\n\n")
    assert events.pop() == b""
    return [orjson.loads(event.removeprefix(b"data: ")) for event in events]


def test_a_chat_stream_has_the_form_of_the_api() -> None:
    """Role first, then text, an end without text, and the usage; one id in all."""
    transcript = _transcript()
    first = _read(transcript.add([_event("a")]))
    last = _read(transcript.add([_event("b", finish_reason="stop")]))
    closing = transcript.end(usage_of(1, 2))
    assert closing.endswith(DONE)
    events = [*first, *last, *_read(closing.removesuffix(DONE))]
    assert len({(e["id"], e["created"], e["object"], e["model"]) for e in events}) == 1
    assert [e["choices"][0]["delta"] for e in events[:-1]] == [
        {"role": "assistant", "content": ""},
        {"content": "a"},
        {"content": "b"},
        {},
    ]
    assert [e["choices"][0]["finish_reason"] for e in events[:-1]] == [None, None, None, "stop"]
    assert [e["usage"] for e in events[:-1]] == [None] * 4
    assert (events[-1]["choices"], events[-1]["usage"]["total_tokens"]) == ([], 3)
    for event in events:
        checked(event, "chat_chunk")


def test_without_being_asked_nothing_is_said_of_usage() -> None:
    """The member is absent, and only the end mark closes the stream."""
    transcript = _transcript(usage=False)
    assert all("usage" not in e for e in _read(transcript.add([_event("a")])))
    assert transcript.end(usage_of(1, 1)) == DONE


def test_choices_are_kept_apart() -> None:
    """Texts of a group are joined per choice, each with its own role and end."""
    transcript = _transcript()
    group = [_event("a"), _event("x", 1), _event("b"), _event("y", 1, finish_reason="length")]
    events = [e["choices"][0] for e in _read(transcript.add(group))]
    assert [(e["index"], e["delta"].get("content")) for e in events] == [
        (0, ""),
        (0, "ab"),
        (1, ""),
        (1, "xy"),
        (1, None),
    ]
    assert [choice.text for choice in transcript.choices] == ["ab", "xy"]


def test_text_that_is_held_back_makes_no_event() -> None:
    """An empty piece is not sent, unless it has log probabilities."""
    transcript = _transcript()
    transcript.add([_event("a")])
    assert transcript.add([_event("")]) == b""
    logprob = TokenLogprob(97, -0.5, ())
    assert len(_read(transcript.add([_event("", logprob=logprob)]))) == 1


def test_completions_have_text_and_may_begin_with_the_prompt() -> None:
    """Echo comes first; log probabilities tell where in the text a token began."""
    transcript = _transcript(chat=False, echo=True)
    transcript.add([_event("ab")])
    logprob = TokenLogprob(97, -0.5, ((97, -0.5),))
    events = _read(transcript.add([_event("c", logprob=logprob), _event("", finish_reason="stop")]))
    assert events[0]["choices"][0]["logprobs"]["text_offset"] == [2]
    assert events[1]["choices"][0]["text"] == ""
    other = _transcript(chat=False, echo=True)
    assert [e["choices"][0]["text"] for e in _read(other.add([_event("a")]))] == ["p", "a"]
    for event in events:
        checked(event, "completion")
