"""Taking what only we may know about a target out of what it says."""

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from gateway.providers.addresses import HIDDEN, hide_addresses

_LONGEST_MESSAGE = 2000
_MOST_READ = 16 * 1024


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Takes a target's secrets (key, address, query) out of text, and other servers' addresses."""

    secrets: tuple[str, ...]
    place: re.Pattern[str] | None = None

    @classmethod
    def of(cls, base_url: str, *secrets: str | None) -> "Scrubber":
        """Everything of ``base_url`` that tells where or with what we call, and ``secrets``."""
        parts = urlsplit(base_url)
        values = [pair.partition("=")[2] for pair in parts.query.split("&")]
        found = [base_url, parts.query, *values, parts.password, parts.netloc, *secrets]
        return cls(tuple(sorted({v for v in found if v}, key=len, reverse=True)), _place(parts))

    def clean(self, text: str) -> str:
        """``text`` without them, at most 2000 characters."""
        text = text[:_MOST_READ]
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        if self.place is not None:
            text = self.place.sub(HIDDEN, text)
        return hide_addresses(text)[:_LONGEST_MESSAGE]


def _place(parts: SplitResult) -> re.Pattern[str] | None:
    """Finds host and port where they stand apart; a bare number may be anything."""
    if not parts.hostname:
        return None
    found = rf"(?<![\w.-]){re.escape(parts.hostname)}(?![\w-]|\.\w)"
    if parts.port is not None:
        found = rf"{found}(?:\W{{1,4}}{parts.port}\b)?|\bport\W{{0,4}}{parts.port}\b"
    return re.compile(found, re.IGNORECASE)
