"""One inference call on the event loop's side: sequences in, events out."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol, Self

from gateway.worker.requests import Generation
from gateway.worker.sequence import Event
from gateway.worker.sequence import Sequence as EngineSequence


class Submitter(Protocol):
    """The part of the engine that a call needs."""

    def submit(self, sequence: EngineSequence) -> None:
        """Take a sequence."""

    def abort(self, sequence: EngineSequence) -> None:
        """Drop a sequence."""


class Call:
    """The sequences of one call. Use as a context manager: what is left at the end is aborted."""

    def __init__(
        self, engine: Submitter, generation: Generation, context: int, poison: str
    ) -> None:
        self._engine = engine
        self._events: asyncio.Queue[list[Event]] = asyncio.Queue()
        self.sequences = list(_sequences(generation, context, poison, self._take))
        self._left = set(self.sequences)

    def __enter__(self) -> Self:
        for sequence in self.sequences:
            self._engine.submit(sequence)
        return self

    def __exit__(self, *_: object) -> None:
        for sequence in self._left:
            self._engine.abort(sequence)

    async def events(self) -> AsyncIterator[list[Event]]:
        """Events in groups as they came, until every sequence has ended.

        Raises the error of a sequence that failed.
        """
        while self._left:
            group = await self._events.get()
            while not self._events.empty():
                group += self._events.get_nowait()
            for event in group:
                if event.last:
                    self._left.discard(event.sequence)
                if event.error is not None:
                    raise event.error
            yield group

    def _take(self, event: Event) -> None:
        """On the event loop, once per event."""
        self._events.put_nowait([event])


def _sequences(
    generation: Generation, context: int, poison: str, sink: Callable[[Event], None]
) -> list[EngineSequence]:
    """``n`` sequences per prompt, in the order of the answer's choices."""
    made = []
    for prompt, text in zip(generation.prompts, generation.texts, strict=True):
        for choice in range(generation.n):
            sequence = EngineSequence(
                list(prompt),
                min(generation.max_tokens or context, context - len(prompt)),
                generation.sampling,
                generation.priority,
                sink,
                index=choice,
                poisoned=bool(poison) and poison in text,
            )
            made.append(sequence)
    return made
