"""What a reader of results may ask for, and the member that each line gets."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.core.errors import InvalidRequest
from gateway.schemas.lists import whole_number

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
    text = query.get("limit") or None
    limit = None if text is None else whole_number(text)
    if text is not None and not limit:
        raise InvalidRequest(
            "limit must be a positive integer.", param="limit", code="invalid_value"
        )
    return ResultsRequest(query.get("after", ""), follow in _YES, limit)


def with_cursor(line: bytes, cursor: str) -> bytes:
    """``line`` (a JSON object and a newline) with its cursor as the last member."""
    return b'%s,"%s":"%s"}\n' % (line.rstrip()[:-1], CURSOR.encode(), cursor.encode())
