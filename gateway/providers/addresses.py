"""Addresses of servers that a text names and that are nobody's business.

Hidden are IP addresses; names with a port; names without a dot in a URL; names below ``local``,
``internal``, ``svc`` and the like; ``localhost``; URLs with a user, or of another scheme than HTTP.
What stays is a public URL, such as one of a vendor's pages of help, without its query.
"""

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

HIDDEN: Final = "***"
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,62})"
_INSIDE = "local|localhost|localdomain|internal|intranet|svc|cluster|lan|corp|home|private|consul"
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://[^\s\"'<>`]+", re.IGNORECASE)
_END = ".,;:!?)]}"
_PORT = r"(?::\d{1,5}\b| port \d{1,5}\b|[\"'], ?\d{1,5}\b)"
_ADDRESS = re.compile(
    # An IPv4 address, and the port after it.
    rf"(?<![\w.])(?:\d{{1,3}}\.){{3}}\d{{1,3}}(?![\w]|\.\w){_PORT}?"
    # As Python's libraries tell of a connection.
    rf"|\bhost\W{{1,3}}{_LABEL}(?:\.{_LABEL})*\W{{1,4}}port\W{{1,3}}\d{{1,5}}\b"
    # A name with dots and a port.
    rf"|(?<![\w.@/-]){_LABEL}(?:\.{_LABEL})*\.[a-z][a-z0-9-]*:\d{{2,5}}\b"
    # A name without dots and a port: one with a number or a hyphen, or where a place is told.
    r"|(?<![\w.@/-])(?:localhost|(?=[a-z0-9]*[0-9-])[a-z][a-z0-9-]{1,62}):\d{2,5}\b"
    r"|(?<=\bat )[a-z][a-z0-9-]{1,62}:\d{2,5}\b|(?<=\bto )[a-z][a-z0-9-]{1,62}:\d{2,5}\b"
    # A name of an inner network, and localhost.
    rf"|(?<![\w.@/-])(?:{_LABEL}\.)+(?:{_INSIDE})(?![\w-]|\.\w)"
    rf"|(?<![\w.@/-])localhost(?![\w-]|\.\w)",
    re.IGNORECASE,
)
# A run is taken whole or not at all: texts of errors may be a caller's own.
_IPV6 = re.compile(r"\[?(?<![\w:.])[0-9a-f:.]++(?!\w)(?:\]:\d+|\])?", re.IGNORECASE)
_LEAST_COLONS = 2
_LOCAL_NAME = re.compile(rf"(?:.*\.)?(?:{_INSIDE})", re.IGNORECASE)


def hide_addresses(text: str) -> str:
    """``text`` with three asterisks in place of each."""
    kept: list[str] = []
    end = 0
    for match in _URL.finditer(text):
        kept += [_bare(text[end : match.start()]), _url(match[0])]
        end = match.end()
    return "".join([*kept, _bare(text[end:])])


def _bare(text: str) -> str:
    if ":" in text:
        text = _IPV6.sub(_ipv6, text)
    return _ADDRESS.sub(HIDDEN, text)


def _ipv6(match: re.Match[str]) -> str:
    found = match[0].lstrip("[").partition("]")[0].rstrip(".:")
    if found.count(":") < _LEAST_COLONS:
        return match[0]
    try:
        ipaddress.IPv6Address(found)
    except ValueError:
        return match[0]
    return HIDDEN if any(c.isdigit() for c in found) else match[0]


def _url(url: str) -> str:
    bare = url.rstrip(_END)
    after = url[len(bare) :]
    try:
        parts = urlsplit(bare)
        shown = _is_public(parts.hostname or "") and parts.port is None and "@" not in parts.netloc
    except ValueError:
        return HIDDEN + after
    if not shown or parts.scheme not in {"http", "https"}:
        return HIDDEN + after
    return (bare if not parts.query else bare.partition("?")[0] + "?" + HIDDEN) + after


def _is_public(host: str) -> bool:
    """Whether a name is one of the public net, as far as it tells."""
    return "." in host and host[-1:].isalpha() and _LOCAL_NAME.fullmatch(host) is None
