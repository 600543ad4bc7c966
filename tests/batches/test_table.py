"""A table says where each row's line lies."""

from gateway.batches.table import LineTable, lengths, lengths_range, refs, refs_range
from gateway.core.work import PartRef


def _piece(packed: bytes, place: tuple[int, int]) -> bytes:
    return packed[place[0] : sum(place)]


def test_lines_of_two_files() -> None:
    """Rows in any order: each with its file, offset and length, and the lengths of the files."""
    table = LineTable(3)
    table.add(2, b"abc\n", good=True)
    table.add(0, b"e\n", good=False)
    table.add(1, b"de\n", good=True)
    packed = table.packed()
    assert lengths(_piece(packed, lengths_range())) == (7, 2)
    found = refs(_piece(packed, refs_range(0, 3)))
    assert found == [PartRef(1, 0, 2), PartRef(0, 4, 3), PartRef(0, 0, 4)]
    assert refs(_piece(packed, refs_range(1, 2))) == [PartRef(0, 4, 3)]
