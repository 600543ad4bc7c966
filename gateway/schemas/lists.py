"""Pages: the list object and the parameters that ask for one."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.core.errors import InvalidRequest

_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class PageRequest:
    """``limit`` objects that come after the one named ``after``; newest first if ``descending``."""

    limit: int
    after: str | None = None
    descending: bool = True


def parse_page(
    query: Mapping[str, str], *, default: int = 20, most: int = 100, prefix: str | None = None
) -> PageRequest:
    """Read ``limit``, ``after`` and ``order``. Raises InvalidRequest naming the parameter.

    With a ``prefix``, ``after`` must have the form of an id that begins so. The object may be gone:
    the page goes on after its place.
    """
    after = query.get("after") or None
    if prefix and after and not re.fullmatch(f"{prefix}[0-9a-f]{{24}}", after):
        raise InvalidRequest(f"No such object: {after[:64]}", param="after", code="invalid_value")
    order = query.get("order") or "desc"
    if order not in {"asc", "desc"}:
        raise InvalidRequest("order must be 'asc' or 'desc'.", param="order", code="invalid_value")
    return PageRequest(_limit(query.get("limit"), default, most), after, order == "desc")


def list_object(data: Sequence[Mapping[str, Any]], *, has_more: bool) -> dict[str, Any]:
    """The list object; ``first_id`` and ``last_id`` are null when the page is empty."""
    return {
        "object": "list",
        "data": list(data),
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": has_more,
    }


def whole_number(text: str) -> int | None:
    """The number that a text of digits means; None for any other text, endless ones too."""
    return int(text) if len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit() else None


def _limit(text: str | None, default: int, most: int) -> int:
    if not text:
        return default
    limit = whole_number(text.removeprefix("-"))
    if limit is None:
        raise InvalidRequest("limit must be an integer.", param="limit", code="invalid_type")
    if text.startswith("-"):
        limit = -limit
    if limit < 1:
        code = "integer_below_min_value"
    elif limit > most:
        code = "integer_above_max_value"
    else:
        return limit
    raise InvalidRequest(f"limit must be between 1 and {most}.", param="limit", code=code)
