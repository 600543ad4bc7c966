"""Secrets of a target in text."""

import pytest

from gateway.providers.scrubber import Scrubber


def test_everything_that_tells_where_or_with_what_we_call() -> None:
    """Address, query, password and key are starred out, long ones first; the text is bounded."""
    scrub = Scrubber.of("https://me:PASS@api.example.com/v1?key=Q1", "sk-1", None, "sk-12")
    assert scrub.clean("sk-12 sk-1 PASS Q1 at api.example.com") == "*** *** *** *** at ***"
    assert len(scrub.clean("x" * 5000)) == 2000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at 127.0.0.1 port 19101 refused", "at *** *** refused"),
        ("(127.0.0.1, 19101)", "(***)"),
        ("Host: 127.0.0.1:19101", "Host: ***"),
        ("127.0.0.1.9 and 8.127.0.0.1 took 19101 tokens", None),
        ("ask http://10.0.0.9:21001/v1 or vllm-1:8000", "ask *** or ***"),
        ("see https://platform.openai.com/docs", None),
    ],
)
def test_host_and_port_apart(text: str, shown: str | None) -> None:
    """However they are written; numbers that only look like it stay."""
    assert Scrubber.of("http://127.0.0.1:19101/v1").clean(text) == (shown or text)
