"""Records added up, as the store wants them."""

from collections.abc import Mapping
from typing import Any

from gateway.core.usage import MOST_TOKENS
from gateway.metering.hours import hour_of
from gateway.store.usage import field_name

_UNKNOWN_MODEL = "(unknown)"
_NOT_FOUND = 404
_HOUR_SECONDS = 3600
_FIGURES = ("requests", "prompt", "completion", "cached", "reasoning", "estimated")


class Sums:
    """Figures of the records that were added, by hour, lane, model, key and status."""

    def __init__(self) -> None:
        self._groups: dict[tuple[int, str, str, str, str], list[int]] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Add a record, as the journal has it."""
        # A model nobody serves is the caller's text: one name for all of them.
        unknown = line["target"] is None and line["http_status"] == _NOT_FOUND
        model = _UNKNOWN_MODEL if unknown else line["model"]
        hour = int(line["ended_at"] // _HOUR_SECONDS)
        group = (hour, line["lane"], model, line["key"], line["status"])
        amounts = self._groups.get(group)
        if amounts is None:
            amounts = self._groups[group] = [0] * len(_FIGURES)
        amounts[0] += 1
        for place, figure in enumerate(_FIGURES[1:], 1):
            if line[figure]:
                amounts[place] += min(int(line[figure]), MOST_TOKENS)

    def hours(self) -> dict[str, dict[str, int]]:
        """Hour → field → amount."""
        hours: dict[str, dict[str, int]] = {}
        for (hour, lane, model, key, status), amounts in self._groups.items():
            fields = hours.setdefault(hour_of(hour * _HOUR_SECONDS), {})
            for figure, amount in zip(_FIGURES, amounts, strict=True):
                if amount:
                    fields[field_name(lane, model, key, status, figure)] = amount
        return hours
