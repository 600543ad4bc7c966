"""What a reader of results may ask for, and the member that each line gets."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.core.errors import InvalidRequest

CURSOR = "headway_cursor"
_YES, _NO = frozenset({"1", "true"}), frozenset({"", "0", "false"})


@dataclass(frozen=True, slots=True)
class ResultsRequest:
    """Lines behind ``after``; ``follow`` to the end of the batch; at most ``limit``, None: all."""

    after: str
    follow: bool
    limit: int | None


def parse_results(query: Mapping[str, str]) -> ResultsRequest:
    """Read ``after``, ``follow`` and ``limit``. Raises InvalidRequest naming the parameter."""
    follow = query.get("follow", "").lower()
    if follow not in _YES | _NO:
        raise InvalidRequest("follow must be 1 or 0.", param="follow", code="invalid_value")
    limit = query.get("limit") or None
    if limit is not None and not (limit.isascii() and limit.isdigit() and int(limit)):
        raise InvalidRequest(
            "limit must be a positive integer.", param="limit", code="invalid_value"
        )
    return ResultsRequest(query.get("after", ""), follow in _YES, int(limit) if limit else None)


def with_cursor(line: bytes, cursor: str) -> bytes:
    """``line`` (a JSON object and a newline) with its cursor as the last member."""
    return b'%s,"%s":"%s"}\n' % (line.rstrip()[:-1], CURSOR.encode(), cursor.encode())
