"""A head without its wish for another protocol is the same head otherwise."""

from gateway.api.upgrade import without_upgrade


def test_the_wish_alone_is_left_out() -> None:
    """Every other line stays, and every other token of ``connection``."""
    headers = [
        (b"host", b"x"),
        (b"connection", b"Upgrade, close, HTTP2-Settings"),
        (b"upgrade", b"h2c"),
        (b"http2-settings", b"AAA"),
        (b"content-length", b"4"),
    ]
    expected = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4\r\n\r\n"
    assert without_upgrade(b"POST / HTTP/1.1", headers) == expected
