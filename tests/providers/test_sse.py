"""Events out of bytes."""

import itertools
import time
from collections.abc import AsyncIterator

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import UpstreamFailed
from gateway.core.large_json import LARGE, TooManyValues
from gateway.providers import sse
from gateway.providers.sse import EventSplitter, events, parse_event

STREAM = (
    ': hi\n\ndata: {"a":"é日本🙂"}\r\n\r\n'
    "data:one\ndata: two\n\n:\nid: 7\ndata: x\r\rdata: [DONE]\n\n"
)
EXPECTED = ['{"a":"é日本🙂"}', "one\ntwo", "x", "[DONE]"]


def split(pieces: list[bytes]) -> list[str]:
    """Every event of the pieces."""
    splitter = EventSplitter()
    found = [event for piece in pieces for event in splitter.feed(piece)]
    return [event.decode() for event in [*found, *splitter.end()]]


@given(st.lists(st.integers(0, len(STREAM.encode())), max_size=12))
def test_any_cut_gives_the_same_events(cuts: list[int]) -> None:
    """Wherever the bytes are cut, even inside a character or a CRLF, the events are the same."""
    data = STREAM.encode()
    edges = [0, *sorted(cuts), len(data)]
    pieces = [data[a:b] for a, b in itertools.pairwise(edges)]
    assert split(pieces) == EXPECTED


def test_last_event_without_empty_line() -> None:
    """A stream that stops after its last line still gave that event."""
    assert split([b"data: a\n\ndata: b"]) == ["a", "b"]
    assert split([b"data: a\n\ndata: b\n"]) == ["a", "b"]


@pytest.mark.parametrize("cut", [1, 2, 5, 100])
def test_a_byte_order_mark_hides_no_event(cut: int) -> None:
    """A BOM before the first line, whatever that is, is dropped; one inside a text stays."""
    for first in ("data: a\n\n", "data: a\r\n\r\n", ": hi\n\ndata: a\n\n"):
        data = f"\ufeff{first}data: \ufeffb\n\n".encode()
        assert split([data[i : i + cut] for i in range(0, len(data), cut)]) == ["a", "\ufeffb"]
    assert split([b"\xef\xbb\xbfevent: error\ndata: x\n\n"]) == ['{"error":"x"}']
    assert split([b"\xef\xbb\xbf" * 100_000 + b"data: a\n\n"]) == ["a"]


@pytest.mark.parametrize(
    "beat", ["data:\n\n", "data: \n\n", "data:  \n\n", "data\n\n", "data:\r\n\r\n"]
)
def test_empty_data_is_a_heartbeat(beat: str) -> None:
    """Events without data are no events, first, between and last, unless they tell an error."""
    assert split([beat.encode(), b"data: a\n\n", beat.encode(), b"data: b \n\n"]) == ["a", "b "]
    assert split([f"data: a\n\n{beat}data: b\n\n{beat}".encode()]) == ["a", "b"]
    assert "reported an error" in split([b"event: error\ndata:\n\n"])[0]


def test_pending() -> None:
    """A started event is known to be unfinished."""
    splitter = EventSplitter()
    assert list(splitter.feed(b"data: a")) == []
    assert splitter.pending
    assert list(splitter.feed(b"\n\n")) == [b"a"]
    assert not splitter.pending


def test_an_endless_event_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upstream that never ends a line does not fill the memory."""
    monkeypatch.setattr(sse, "LONGEST_EVENT", 100)
    with pytest.raises(ValueError, match="too long"):
        split([b"data: " + b"x" * 200])


def test_json_split_inside_a_text() -> None:
    """A JSON text cut by the line break between two data lines is mended."""
    assert parse_event(b'{"a":"b\nc"}') == {"a": "bc"}
    with pytest.raises(ValueError, match=r"JSON|unexpected|invalid"):
        parse_event(b"nonsense")


def test_long_integers_stay() -> None:
    """Of an event in one line, and of one whose lines are joined."""
    for data in (b'{"seed":%d}', b'{"x":"a\nb","seed":%d}'):
        assert parse_event(data % 2**70)["seed"] == 2**70


async def test_a_malformed_stream_is_the_targets_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no event stream becomes an upstream error."""
    monkeypatch.setattr(sse, "LONGEST_EVENT", 10)

    async def pieces() -> AsyncIterator[bytes]:
        yield b"x" * 100

    with pytest.raises(UpstreamFailed):
        [event async for event in events(pieces(), "t")]


def test_an_event_nested_too_deeply() -> None:
    """It could not be passed on: it counts as no JSON."""
    with pytest.raises(ValueError, match="deep"):
        parse_event(b'{"x":' + b"[" * 300 + b"]" * 300 + b"}")


def test_an_event_of_too_many_parts_is_not_read() -> None:
    """Objects and arrays are counted, not their signs in texts."""
    crowded = b'{"x":[' + b",".join([b'{"a":[]}'] * 60_000) + b"]}"
    with pytest.raises(TooManyValues):
        parse_event(crowded)
    assert len(parse_event(b'{"x":[' + b",".join([b'{"a":1}'] * 60_000) + b"]}")["x"]) == 60_000
    assert parse_event(b'{"x":"' + b"{[" * 200_000 + b'"}') == {"x": "{[" * 200_000}


def test_large_is_what_waits_with_the_piece_that_comes() -> None:
    """Bytes of whole lines and of the one that has no end yet, until the event is taken."""
    splitter = EventSplitter()
    half = b"x" * (LARGE // 2)
    assert not splitter.is_large(half)
    list(splitter.feed(b"data: " + half))
    assert splitter.is_large(half)
    list(splitter.feed(b"\ndata: "))
    assert splitter.is_large(half)
    assert list(splitter.feed(b"x\n\n"))
    assert not splitter.is_large(half)


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    "data", [b"x" * 4_000_000, b"\r\ndata: y" * 100_000], ids=["long line", "many lines"]
)
def test_a_long_event_costs_its_length(data: bytes, line_end: bytes) -> None:
    """However many pieces it comes in, its bytes are looked at once."""
    whole = b"data: " + data + line_end * 2
    began = time.process_time()
    found = split([whole[at : at + 2000] for at in range(0, len(whole), 2000)])
    assert time.process_time() - began < 2
    assert [len(event) for event in found] == [len(data.replace(b"\r\ndata: ", b"\n"))]


def test_many_lines_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event of endless lines is refused as one of an endless line is."""
    monkeypatch.setattr(sse, "LONGEST_EVENT", 10_000)
    with pytest.raises(ValueError, match="too long"):
        split([b"data: x\n"] * 1000)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ('{"message":"m"}', {"message": "m"}),
        ('{"error":{"message":"m"}}', {"message": "m"}),
        ("it broke", "it broke"),
        ("null", "The target reported an error."),
    ],
)
def test_an_event_named_error(data: str, error: object) -> None:
    """It is an error whatever its data looks like; the next event is none again."""
    stream = f'event: error\ndata: {data}\n\nevent: x\ndata: {{"a":1}}\n\n'.encode()
    for pieces in ([stream], [bytes([byte]) for byte in stream]):
        first, second = split(pieces)
        assert orjson.loads(first) == {"error": error}
        assert second == '{"a":1}'


def test_an_event_that_ends_in_cr_waits_for_nothing() -> None:
    """A LF that still comes belongs to the last CR, also in a piece of its own."""
    splitter = EventSplitter()
    assert list(splitter.feed(b"data: a\r\r")) == [b"a"]
    assert not splitter.pending
    assert list(splitter.feed(b"data: b\r")) == []
    assert list(splitter.feed(b"\n")) == []
    assert list(splitter.feed(b"data: c\r\n\r")) == [b"b\nc"]
    assert list(splitter.feed(b"\ndata: d\r\r")) == [b"d"]
    assert list(splitter.end()) == []
