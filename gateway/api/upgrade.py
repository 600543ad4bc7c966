"""A request that asks for another protocol, as one that does not."""

_UPGRADE = frozenset({b"upgrade", b"http2-settings"})


def without_upgrade(first: bytes, headers: list[tuple[bytes, bytes]]) -> bytes:
    """A request's head once more: its ``first`` line, and no wish for another protocol."""
    lines = [first]
    for name, value in headers:
        if name in _UPGRADE:
            continue
        kept = value
        if name == b"connection":
            tokens = [token.strip() for token in value.split(b",")]
            kept = b", ".join(t for t in tokens if t.lower() not in _UPGRADE)
        lines.append(b"%b: %b" % (name, kept))
    return b"\r\n".join([*lines, b"", b""])
