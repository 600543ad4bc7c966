"""Any contiguous range of a segment is a good batch."""

from gateway.batches.ordering import (
    ROW,
    IndexRow,
    embedding_inputs,
    estimated_tokens,
    ordered,
    packed,
    prefix_hash,
    tokens_column,
)


def test_shared_prefixes_lie_together_and_the_largest_come_first() -> None:
    """Groups follow first use; a prefix nobody shares is no group."""
    rows = [
        IndexRow(0, 1, 10, 7),
        IndexRow(1, 1, 1000, 8),
        IndexRow(2, 1, 1000, 7),
        IndexRow(3, 1, 10, 9),
        IndexRow(4, 1, 4000, 10),
    ]
    assert [row.offset for row in ordered(rows)] == [2, 0, 4, 1, 3]


def test_the_order_is_always_the_same() -> None:
    """Indexing again after a crash gives the same index."""
    rows = [IndexRow(n, 5, 1 + n * 37 % 11, n % 3) for n in range(100)]
    assert packed(ordered(rows)) == packed(ordered(list(rows)))


def test_the_index_is_24_bytes_a_row() -> None:
    """The tokens column is what the queue is given."""
    index = packed([IndexRow(2**40, 5, 300, 2**63), IndexRow(9, 6, 7, 0)])
    assert len(index) == 48
    assert next(ROW.iter_unpack(index)) == (2**40, 5, 300, 2**63)
    assert tokens_column(index) == (300).to_bytes(4, "little") + (7).to_bytes(4, "little")


def test_estimates() -> None:
    """Prompt by size, output by what is asked for, images by number."""
    text = {"messages": [{"role": "user", "content": "x" * 400}], "max_tokens": 64}
    assert 160 <= estimated_tokens(text) <= 175
    assert estimated_tokens({**text, "n": 3}) - estimated_tokens(text) == 128
    image = {"messages": [{"content": [{"image_url": {"url": "x" * 10**6}}]}], "max_tokens": 1}
    assert estimated_tokens(image) < 1100
    assert estimated_tokens({"input": "x" * 400}) == 101
    assert estimated_tokens({"prompt": "x", "max_tokens": -5, "n": True}) == 257
    assert estimated_tokens({"prompt": "x", "max_tokens": 2**60}) == 2**31


def test_prefixes() -> None:
    """Equal system text is one prefix, whatever the user says."""
    system = {"role": "system", "content": "You label notes."}
    first, second = ({"messages": [system, {"role": "user", "content": c}]} for c in "ab")
    assert prefix_hash(first) == prefix_hash(second)
    assert prefix_hash(first) != prefix_hash({"messages": [{"role": "user", "content": "a"}]})
    assert prefix_hash({"prompt": "x" * 300 + "a"}) == prefix_hash({"prompt": "x" * 300 + "b"})
    assert prefix_hash({"messages": ["odd"]}) > 0


def test_embedding_inputs() -> None:
    """A text or a token array is one input, a list of them is many."""
    counts = [embedding_inputs({"input": i}) for i in ("a", [1, 2], ["a", "b"], [[1], [2], [3]])]
    assert counts == [1, 1, 2, 3]
