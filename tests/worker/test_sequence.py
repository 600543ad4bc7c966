"""What a sequence derives from its state."""

import pytest

from gateway.worker.sampling import SamplingParams
from gateway.worker.sequence import Event, Sequence


def _sequence(priority: int | None) -> Sequence:
    return Sequence([1, 2, 3], 5, SamplingParams(), priority, print)


@pytest.mark.parametrize(("priority", "interactive"), [(None, False), (0, True), (100, False)])
def test_interactive_is_what_says_so(priority: int | None, interactive: bool) -> None:
    """Nobody is interactive by silence."""
    assert _sequence(priority).interactive is interactive


def test_lengths_follow_the_tokens() -> None:
    """Prompt and output count, the newest token is the last one."""
    sequence = _sequence(None)
    sequence.computed = 2
    assert (sequence.length, sequence.unread, sequence.last_token) == (3, 1, 3)
    sequence.output.append(9)
    assert (sequence.length, sequence.last_token) == (4, 9)


def test_an_event_with_a_reason_is_the_last() -> None:
    """Text alone is not."""
    assert not Event(_sequence(None), "a").last
    assert Event(_sequence(None), finish_reason="stop").last
