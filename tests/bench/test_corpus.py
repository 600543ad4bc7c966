"""The demo's prompts."""

import pytest

from gateway.bench.corpus import MAX_WORDS, MIN_WORDS, prompts


def test_the_same_prompts_each_time_and_all_different() -> None:
    """Names and texts are unique, in the same order on every call."""
    chosen = prompts(256)
    assert chosen == prompts(256)
    assert len({prompt.name for prompt in chosen}) == len({p.text for p in chosen}) == 256
    assert all(MIN_WORDS <= len(prompt.text.split()) <= MAX_WORDS for prompt in chosen)


def test_a_body_asks_for_an_exact_length() -> None:
    """Output length does not depend on what the model makes of the text."""
    body = prompts(1)[0].body("m", 64)
    assert (body["model"], body["max_tokens"], body["ignore_eos"]) == ("m", 64, True)
    assert "argparse" in body["messages"][0]["content"]


def test_asking_for_too_many_is_refused() -> None:
    """Better an error than fewer requests than the figures claim."""
    with pytest.raises(ValueError, match="only"):
        prompts(100_000)
