"""What is left to read."""

from gateway.simulator.sequence import Sequence


def test_tokens_of_a_preempted_sequence_are_read_again() -> None:
    """Its prompt and what it had generated."""
    sequence = Sequence(100, 20)
    assert (sequence.unread, sequence.total) == (100, 120)
    sequence.kept, sequence.read = 7, 50
    assert sequence.unread == 57
