"""A note tells whose line follows, and whether it is whole."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.usage import Usage
from gateway.store.part_notes import NOTE_BYTES, PartNote, noted, scan, split

NOTE = PartNote(3, 49_999, True, Usage(10, 20, 5, 2), "2026113023")
LINE = b'{"custom_id":"a"}\n'


def test_a_note_is_a_line_of_json_of_fixed_length() -> None:
    """A part stays readable line by line; any tokens fit."""
    text = noted(PartNote(99, 49_999, False, Usage(2**70, 2**70, 2**70, 2**70), "2099123123"), LINE)
    assert text[NOTE_BYTES - 1 : NOTE_BYTES] == b"\n"
    assert text[NOTE_BYTES:] == LINE
    assert text.count(b"\n") == 2
    assert split(text) is not None


@given(st.booleans(), st.booleans(), st.integers(0, 2**32 - 1), st.binary(max_size=50))
def test_what_was_noted_is_read(ok: bool, estimated: bool, tokens: int, line: bytes) -> None:
    """Whatever the line holds."""
    note = PartNote(0, 7, ok, Usage(tokens, 1, tokens, 0, estimated), "2026010100")
    assert split(noted(note, line)) == (note, line)


@pytest.mark.parametrize("damage", range(0, NOTE_BYTES + len(LINE), 7))
def test_a_damaged_line_is_none(damage: int) -> None:
    """Cut off or overwritten anywhere: the padding alone may change."""
    text = noted(NOTE, LINE)
    assert split(text[:damage]) is None
    changed = bytearray(text)
    changed[damage] ^= 1
    assert split(bytes(changed)) in {None, (NOTE, LINE)}


def test_a_scan_ends_at_the_first_line_that_is_not_whole(tmp_path: Path) -> None:
    """What stands behind it cannot be told apart from rubbish."""
    path = tmp_path / "0.jsonl"
    path.write_bytes(noted(NOTE, LINE) * 2 + noted(NOTE, LINE)[:-1] + noted(NOTE, LINE))
    found = list(scan(path, 4))
    assert [note for note, _ in found] == [NOTE, NOTE]
    last = found[1][1]
    assert (last.part, last.offset, last.length) == (4, 2 * NOTE_BYTES + len(LINE), len(LINE))
    path.write_bytes(b'{"custom_id":"a line without a note"}\n')
    assert list(scan(path, 4)) == []
