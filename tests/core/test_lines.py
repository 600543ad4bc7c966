"""Lines from pieces."""

import pytest

from gateway.core.lines import LineSplitter, lines_of

_TEXT = b'{"a":"\xe2\x80\xa8"}\r\n\n{"b":1}\x0b\n{"c":2}'


@pytest.mark.parametrize("size", range(1, len(_TEXT) + 1))
def test_any_cut_gives_the_same_lines(size: int) -> None:
    """Split at LF alone, wherever the pieces end; a last line needs none."""
    pieces = [_TEXT[at : at + size] for at in range(0, len(_TEXT), size)]
    assert list(lines_of(pieces)) == [b'{"a":"\xe2\x80\xa8"}\r', b'{"b":1}\x0b', b'{"c":2}']


def test_an_unfinished_line_is_not_given_out() -> None:
    """It stays until its LF comes."""
    splitter = LineSplitter()
    assert splitter.feed(b"one\ntw") == [b"one"]
    assert splitter.rest() == b"tw"
    assert splitter.feed(b"o\n") == [b"two"]
    assert splitter.rest() == b""
