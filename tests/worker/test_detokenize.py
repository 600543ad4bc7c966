"""Text as it comes, never more and never less than may be shown."""

import pytest

from gateway.worker.detokenize import Detokenizer


def _shown(pieces: list[bytes], *stops: str) -> tuple[list[str], bool]:
    text = Detokenizer(stops)
    shown = []
    for piece in pieces:
        shown.append(text.feed(piece))
        if text.stopped:
            break
    return [*shown, text.finish()], text.stopped


@pytest.mark.parametrize("text", ["🙂", "ď", "日", "a🙂ď日b"])
def test_wrk_07_a_character_over_tokens_is_shown_once_whole(text: str) -> None:
    """WRK-07: byte by byte, nothing is replaced and nothing is lost."""
    shown, _ = _shown([bytes([byte]) for byte in text.encode()])
    assert "".join(shown) == text
    assert all("\ufffd" not in part for part in shown)


def test_wrk_05_a_stop_string_over_tokens_is_never_shown() -> None:
    """WRK-05: text before it is complete, no part of it gets out."""
    assert _shown([b"x..E", b"ND.."], "END") == (["x..", "", ""], True)


def test_wrk_06_held_text_is_released_when_it_cannot_match() -> None:
    """WRK-06: 'EN' waits for the next token, and goes out with the X that follows."""
    assert _shown([b"aEN", b"Xb"], "END") == (["a", "ENXb", ""], False)


def test_wrk_06_what_is_held_at_the_end_is_not_lost() -> None:
    """WRK-06: a beginning of a stop string that never comes is text."""
    shown, stopped = _shown(["日本E".encode(), b"N"], "END", "終わり")
    assert ("".join(shown), stopped) == ("日本EN", False)


def test_the_first_of_several_stop_strings_counts() -> None:
    """The earliest place wins, whatever the order of the list."""
    assert _shown([b"one two three"], "three", "two")[0][0] == "one "


def test_a_character_that_never_became_whole_is_no_text() -> None:
    """An answer cut inside a character ends before it."""
    text = Detokenizer(())
    assert text.feed(b"a" + "日".encode()[:2]) + text.finish() == "a"
