"""OpenAI objects."""

from gateway.worker.answers import Answer, Choice, usage_of
from gateway.worker.sampling import SamplingParams
from gateway.worker.sequence import Event, Sequence, TokenLogprob

SEQUENCE = Sequence([1], 5, SamplingParams(), None, print)


def _answer(*, chat: bool) -> Answer:
    return Answer(chat=chat, model="m", created=7, pieces=lambda token: bytes([token]))


def test_logprobs_have_the_form_of_their_endpoint() -> None:
    """Chat lists tokens with bytes, completions has parallel lists."""
    choice = Choice()
    choice.add(Event(SEQUENCE, "a", 1, TokenLogprob(97, -0.5, ((97, -0.5), (98, -1.5)))))
    chat = _answer(chat=True).whole([choice], usage_of(1, 1))["choices"][0]["logprobs"]
    assert chat["content"][0]["bytes"] == [97]
    assert [top["token"] for top in chat["content"][0]["top_logprobs"]] == ["a", "b"]
    plain = _answer(chat=False).whole([choice], usage_of(1, 1))["choices"][0]["logprobs"]
    assert (plain["tokens"], plain["top_logprobs"]) == (["a"], [{"a": -0.5, "b": -1.5}])
    assert plain["text_offset"] == [0]
