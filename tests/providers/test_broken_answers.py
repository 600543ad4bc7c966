"""Answers that cannot be used."""

from gateway.core.errors import StreamInterrupted, UpstreamFailed
from gateway.core.large_json import TooManyValues
from gateway.providers.broken_answers import (
    TOO_DEEP,
    ended_early,
    endless_event,
    malformed_answer,
    malformed_stream,
    unreadable_answer,
    unreadable_event,
)


def test_too_deep_is_told_apart() -> None:
    """The same question would get it again; what is no JSON may be an accident."""
    for data, code in (b"[" * 300 + b"]" * 300, TOO_DEEP), (b"<html>", "upstream_failed"):
        assert unreadable_event(data, "up", ValueError()).code == code
        assert unreadable_answer(data, "up").code == code


def test_whether_the_target_worked() -> None:
    """Broken JSON was made by work; a page of HTML, from whatever stands before it, was not."""
    assert unreadable_answer(b'\n{"choices":[NaN]}', "up").made
    assert not unreadable_answer(b"<html>", "up").made
    assert malformed_stream("up").made
    assert malformed_answer("up").made


def test_a_crowded_event_is_told_apart() -> None:
    """By what reading it raised."""
    assert "objects and arrays" in unreadable_event(b"{}", "up", TooManyValues()).message


def test_the_target_is_named_and_nothing_it_said() -> None:
    """A stream that ends is interrupted, everything else is the target's failure."""
    assert type(ended_early("up")) is StreamInterrupted
    made = ended_early, endless_event, malformed_stream
    for error in (make("up") for make in made):
        assert error.target == "up"
    quoted = unreadable_answer(b"secret words", "up")
    assert (type(quoted), "secret" in quoted.message) == (UpstreamFailed, False)
    assert malformed_answer("up").message != malformed_stream("up").message
