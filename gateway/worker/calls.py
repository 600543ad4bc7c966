"""One inference call on the event loop's side: sequences in, events out."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol, Self

from gateway.worker.requests import Generation
from gateway.worker.sequence import Event
from gateway.worker.sequence import Sequence as EngineSequence

# Nobody watches a batch row's tokens come: after its first, they are handed on some at a time.
_BATCH_PRIORITY = 100
_BATCH_GROUP = 8


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
        self._events: list[Event] = []
        self._first = True
        self._waiter: asyncio.Future[None] | None = None
        batch = generation.priority is not None and generation.priority >= _BATCH_PRIORITY
        self._group = _BATCH_GROUP if batch else 1
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
            if not self._events:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
            group, self._events = self._events, []
            for event in group:
                if event.last:
                    self._left.discard(event.sequence)
                if event.error is not None:
                    raise event.error
            yield group

    def _take(self, event: Event) -> None:
        """On the event loop, once per event."""
        self._events.append(event)
        wanted = self._first or event.last or len(self._events) >= self._group
        if wanted and self._waiter is not None and not self._waiter.done():
            self._first = False
            self._waiter.set_result(None)


def _sequences(
    generation: Generation, context: int, poison: str, sink: Callable[[Event], None]
) -> list[EngineSequence]:
    """``n`` sequences per prompt, in the order of the answer's choices."""
    made: list[EngineSequence] = []
    for prompt, text in zip(generation.prompts, generation.texts, strict=True):
        for choice in range(generation.n):
            sequence = EngineSequence(
                list(prompt),
                min(generation.max_tokens or context, context - len(prompt)),
                generation.sampling,
                generation.priority,
                sink,
                index=choice,
                place=len(made),
                poisoned=bool(poison) and poison in text,
            )
            made.append(sequence)
    return made
