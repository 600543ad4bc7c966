"""A call between the event loop and the engine."""

from collections.abc import AsyncIterator

import pytest

from gateway.core.errors import UpstreamFailed
from gateway.worker.calls import Call
from gateway.worker.requests import Generation
from gateway.worker.sampling import SamplingParams
from gateway.worker.sequence import Event, Sequence


class _Engine:
    def __init__(self) -> None:
        self.submitted: list[Sequence] = []
        self.aborted: list[Sequence] = []

    def submit(self, sequence: Sequence) -> None:
        self.submitted.append(sequence)

    def abort(self, sequence: Sequence) -> None:
        self.aborted.append(sequence)


def _call(engine: _Engine) -> Call:
    prompts, texts = ((1, 2), (3,)), ("ab", "c")
    generation = Generation(
        False, prompts, texts, 2, 50, SamplingParams(), None, False, False, False
    )
    return Call(engine, generation, 10, "c")


async def test_there_are_n_sequences_per_prompt() -> None:
    """In the order of the answer's choices, cut to the context, poisoned by their text."""
    sequences = _call(_Engine()).sequences
    assert [(s.prompt, s.index) for s in sequences] == [
        ([1, 2], 0),
        ([1, 2], 1),
        ([3], 0),
        ([3], 1),
    ]
    assert [s.max_tokens for s in sequences] == [8, 8, 9, 9]
    assert [s.poisoned for s in sequences] == [False, False, True, True]


async def test_what_is_left_when_the_reader_leaves_is_aborted() -> None:
    """Sequences that ended by themselves are not."""
    engine = _Engine()
    with _call(engine) as call:
        first = engine.submitted[0]
        first.sink(Event(first, "x", 1, finish_reason="stop"))
        assert [len(group) async for group in _first(call)] == [1]
    assert set(engine.aborted) == set(engine.submitted[1:])


async def test_a_failed_sequence_ends_the_call() -> None:
    """Its error is raised to the reader, the others are aborted."""
    engine = _Engine()
    error = UpstreamFailed("no", target="local")
    with _call(engine) as call:
        engine.submitted[0].sink(Event(engine.submitted[0], error=error))
        with pytest.raises(UpstreamFailed):
            await anext(call.events())
    assert len(engine.aborted) == 3


async def _first(call: Call) -> AsyncIterator[list[Event]]:
    async for group in call.events():
        yield group
        return
