"""Answers that cannot be used."""

from collections.abc import Callable

import pytest

from gateway.core.errors import StreamInterrupted, UpstreamFailed
from gateway.providers.broken_answers import (
    TOO_DEEP,
    crowded_event,
    ended_early,
    endless_event,
    malformed_answer,
    malformed_stream,
    unreadable_answer,
    unreadable_event,
)


@pytest.mark.parametrize("unreadable", [unreadable_event, unreadable_answer])
def test_too_deep_is_told_apart(unreadable: Callable[[bytes, str], UpstreamFailed]) -> None:
    """The same question would get it again; what is no JSON may be an accident."""
    assert unreadable(b"[" * 300 + b"]" * 300, "up").code == TOO_DEEP
    assert unreadable(b"<html>", "up").code == "upstream_failed"


def test_the_target_is_named_and_nothing_it_said() -> None:
    """A stream that ends is interrupted, everything else is the target's failure."""
    assert type(ended_early("up")) is StreamInterrupted
    made = ended_early, endless_event, crowded_event, malformed_stream
    for error in (make("up") for make in made):
        assert error.target == "up"
    quoted = unreadable_answer(b"secret words", "up")
    assert (type(quoted), "secret" in quoted.message) == (UpstreamFailed, False)
    assert malformed_answer("up").message != malformed_stream("up").message
