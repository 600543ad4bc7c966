"""Ids are opaque, of the wanted form and never repeat."""

import re

import pytest

from gateway.core.ids import new_id, new_ordered_id


@pytest.mark.parametrize(("prefix", "separator"), [("batch", "_"), ("file", "-"), ("req", "_")])
def test_the_form_is_prefix_separator_hex(prefix: str, separator: str) -> None:
    """Files use a hyphen as the OpenAI service does, everything else an underscore."""
    assert re.fullmatch(f"{prefix}{separator}[0-9a-f]{{24}}", new_id(prefix))


def test_ids_do_not_repeat() -> None:
    """A thousand ids are a thousand different ones, of any length."""
    assert len({new_id("x", 15) for _ in range(1000)}) == 1000


def test_ordered_ids_sort_by_time() -> None:
    """Text order is time order, and two ids of one millisecond differ."""
    early, late, beside = (new_ordered_id("file", at) for at in (1_700_000_000_000, 2**41, 2**41))
    assert re.fullmatch("file-[0-9a-f]{24}", early)
    assert early < late
    assert late != beside
