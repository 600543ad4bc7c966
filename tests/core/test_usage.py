"""Token counts as answers report them."""

from typing import Any

import pytest

from gateway.core.usage import MOST_TOKENS, ReportedUsage, Usage, reported_in, usage_member


def test_chat_and_responses_names_are_read() -> None:
    """Both families of names give the same counts."""
    chat = {
        "prompt_tokens": 16111,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 15872},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }
    responses = {
        "input_tokens": 16111,
        "output_tokens": 2,
        "input_tokens_details": {"cached_tokens": 15872},
        "output_tokens_details": {"reasoning_tokens": 1},
    }
    assert Usage.from_openai(chat) == Usage.from_openai(responses) == Usage(16111, 2, 15872, 1)


def test_an_explicit_zero_is_respected() -> None:
    """Zero is a count, not a missing one."""
    assert Usage.from_openai({"prompt_tokens": 0, "input_tokens": 9}).prompt == 0


@pytest.mark.parametrize("odd", [None, "7", 1.5, -5, True, 1e30, 2**40, float("nan"), [1]])
def test_nonsense_is_no_count(odd: Any) -> None:
    """Nulls, texts, halves, negatives, booleans and the impossible are estimated, and said so."""
    assert Usage.from_openai({"prompt_tokens": odd, "completion_tokens": 3}) == Usage(
        0, 3, estimated=True
    )
    report = ReportedUsage.of({"prompt_tokens": 4, "completion_tokens": odd})
    assert report.completed(9, 8) == Usage(4, 8, estimated=True)
    assert report.completed(9, 0) == Usage(4, 0, estimated=True)
    assert reported_in({"usage": {"prompt_tokens": odd, "output_tokens": odd}}) is None


def test_a_figure_left_out_is_the_rest_of_the_total() -> None:
    """The total tells the other figure; a whole number may be written as a fraction."""
    assert ReportedUsage.of({"completion_tokens": 5, "total_tokens": 12}).prompt == 7
    assert ReportedUsage.of({"prompt_tokens": 7.0, "total_tokens": 12}).completion == 5
    assert ReportedUsage.of({"completion_tokens": 5, "total_tokens": 5}).prompt is None


def test_who_makes_no_tokens_need_not_count_them() -> None:
    """Vectors have a prompt alone: no completion is none, unless there is a text."""
    vectors = ReportedUsage.of({"prompt_tokens": 7, "total_tokens": 7})
    assert vectors.completed(9, 0) == Usage(7, 0)
    assert vectors.completed(9, 3) == Usage(7, 3, estimated=True)


def test_a_sum_is_estimated_when_a_part_is() -> None:
    """One guessed figure makes the sum a guess."""
    total = Usage(1, 2) + Usage(3, 4, 1, 1, estimated=True)
    assert total == Usage(4, 6, 1, 1, estimated=True)
    assert total.total == 10


def test_it_reads_back_what_it_writes() -> None:
    """Both of OpenAI's forms lose nothing but the estimate mark, and tell the total."""
    usage = Usage(10, 5, 2, 3)
    for form in (usage.to_openai(), usage.to_responses()):
        assert Usage.from_openai(form) == usage
        assert form["total_tokens"] == 15


def test_no_figure_is_beyond_all_bounds() -> None:
    """What a broken target reports stays countable."""
    most = {"prompt_tokens": MOST_TOKENS, "completion_tokens": 0}
    huge = {"prompt_tokens_details": {"cached_tokens": 2**63}}
    assert Usage.from_openai({**most, **huge}) == Usage(MOST_TOKENS, 0)
    assert Usage.from_openai({**most, "prompt_tokens": MOST_TOKENS + 1}).estimated


def test_usage_is_found_where_vendors_put_it() -> None:
    """At the top, in a response's event, or beside the last chunk."""
    usage = {"prompt_tokens": 1}
    for body in ({"usage": usage}, {"response": {"usage": usage}}, {"x_groq": {"usage": usage}}):
        assert usage_member(body) == usage
    assert usage_member({"usage": None, "x_groq": {"id": "req"}}) is None


def test_cached_tokens_under_another_name() -> None:
    """DeepSeek counts hits of its cache."""
    told = {"prompt_tokens": 9, "prompt_cache_hit_tokens": 6, "prompt_cache_miss_tokens": 3}
    assert Usage.from_openai(told).cached == 6
