"""Lines of bytes that come in pieces."""

from collections.abc import Iterable, Iterator


class LineSplitter:
    """Cuts at LF and at nothing else; what it does grows with what it is fed and no faster."""

    def __init__(self) -> None:
        self._open: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that ``piece`` ends, without their LF."""
        *whole, rest = piece.split(b"\n")
        if whole:
            whole[0] = b"".join([*self._open, whole[0]])
            self._open.clear()
        if rest:
            self._open.append(rest)
        return whole

    def rest(self) -> bytes:
        """What no LF has ended yet."""
        return b"".join(self._open)


def lines_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Every line, also a last one without LF; empty ones are left out."""
    splitter = LineSplitter()
    for piece in pieces:
        yield from filter(None, splitter.feed(piece))
    if rest := splitter.rest():
        yield rest
