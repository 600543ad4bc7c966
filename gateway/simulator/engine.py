"""Continuous batching with chunked prefill, as vLLM schedules it, without computing anything.

A step decodes one token for every running row and reads prompts with what is left of the token
budget: those in progress first, then new ones, while slots and cache have room. The cache grows by
the token; when it is full the newest row (by priority: the last in rank) gives its place up and is
read again later. Pure: no clock, no input or output. A step costs what changes, not what runs.
"""

from collections import defaultdict
from dataclasses import dataclass

from gateway.core.errors import ConfigError
from gateway.simulator.profile import EngineProfile
from gateway.simulator.queue import WaitingQueue
from gateway.simulator.sequence import Sequence, State

POLICIES = ("fcfs", "priority")


@dataclass(frozen=True, slots=True)
class Step:
    """What one step did and how many ``seconds`` it took.

    Everyone in ``Engine.decoding`` and in ``ended`` has one more token at its end; ``first`` are
    those of them that got their first one. ``failed`` do not fit in the cache at all. ``rows``
    decoded over ``kv`` tokens beside ``prefill`` tokens that were read.
    """

    seconds: float
    first: tuple[Sequence, ...]
    ended: tuple[Sequence, ...]
    failed: tuple[Sequence, ...]
    rows: int
    kv: int
    prefill: int


class Engine:
    """One engine. ``profile`` may be replaced between steps."""

    def __init__(self, profile: EngineProfile, policy: str = "fcfs") -> None:
        if policy not in POLICIES:
            raise ConfigError(f"There is no policy {policy!r}; there are {', '.join(POLICIES)}.")
        self.profile = profile
        self.decoding: dict[Sequence, None] = {}
        self.kv_used = 0
        self.preemptions = 0
        self._waiting = WaitingQueue(by_priority=policy == "priority")
        self._running: dict[Sequence, None] = {}
        self._reading: dict[Sequence, None] = {}
        self._decode_kv = 0
        self._ends: defaultdict[int, dict[Sequence, None]] = defaultdict(dict)
        self._steps = 0
        self._arrivals = 0

    @property
    def running(self) -> int:
        """Sequences with a slot."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Sequences without one."""
        return len(self._waiting)

    @property
    def kv_usage(self) -> float:
        """The share of the cache that is taken."""
        return min(1.0, self.kv_used / self.profile.kv_tokens)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._running and not self._waiting

    def add(self, sequence: Sequence) -> None:
        """Take a new sequence."""
        self._arrivals += 1
        sequence.arrival = self._arrivals
        self._waiting.push(sequence)

    def cancel(self, sequence: Sequence) -> None:
        """The reader of one that was added has left: slot and cache are free at once."""
        if sequence.state is State.WAITING:
            self._waiting.drop(sequence)
        elif sequence.state is not State.DONE:
            self._leave(sequence)
            sequence.state = State.DONE

    def step(self) -> Step:
        """Run one step. Of an idle engine, an empty one."""
        crowded = self._make_room()
        rows, kv = len(self.decoding), self._decode_kv
        self._steps += 1
        self._decode_kv += rows
        self.kv_used += rows
        ended = self._ends.pop(self._steps, {})
        left = self.profile.max_num_batched_tokens - rows
        done: list[Sequence] = []
        failed: list[Sequence] = []
        for sequence in list(self._reading):
            left -= self._read(sequence, left, done)
        if not crowded:
            left = self._admit(left, done, failed)
        prefill = self.profile.max_num_batched_tokens - rows - left
        for sequence in ended:
            self._leave(sequence)
            sequence.state = State.DONE
        first = tuple(s for s in done if not s.kept)
        last = tuple(s for s in done if self._begin(s))
        seconds = self.profile.seconds(rows, kv, prefill) if rows or prefill else 0.0
        return Step(seconds, first, (*ended, *last), tuple(failed), rows, kv, prefill)

    def generated(self, sequence: Sequence) -> int:
        """Tokens that a decoding sequence has produced so far."""
        return sequence.kept + self._steps - sequence.started + 1

    def _make_room(self) -> bool:
        """Preempt until every running row can grow by a token; whether anyone had to go."""
        crowded = False
        while self._running and self.kv_used + len(self.decoding) > self.profile.kv_tokens:
            crowded = True
            self.preemptions += 1
            self._preempt(self._last())
        return crowded

    def _last(self) -> Sequence:
        if self._waiting.by_priority:
            return max(self._running, key=self._waiting.rank)
        return next(reversed(self._running))

    def _preempt(self, sequence: Sequence) -> None:
        kept = self.generated(sequence) if sequence in self.decoding else sequence.kept
        self._leave(sequence)
        sequence.kept, sequence.read = kept, 0
        self._waiting.push(sequence)

    def _admit(self, left: int, done: list[Sequence], failed: list[Sequence]) -> int:
        """Start waiting sequences while tokens, slots and cache last; returns the tokens left."""
        capacity = self.profile.kv_tokens
        while (sequence := self._waiting.head()) is not None:
            if sequence.total > capacity:
                self._waiting.drop(sequence)
                sequence.failed = True
                failed.append(sequence)
                continue
            full = len(self._running) >= self.profile.max_num_seqs
            if left <= 0 or full or self.kv_used + sequence.unread > capacity:
                break
            self._waiting.pop()
            sequence.state = State.PREFILL
            self._running[sequence] = None
            self._reading[sequence] = None
            left -= self._read(sequence, left, done)
        return left

    def _read(self, sequence: Sequence, tokens: int, done: list[Sequence]) -> int:
        """Read a piece of at most ``tokens`` of a prompt, as far as there is room for it."""
        count = min(sequence.unread, tokens, self.profile.kv_tokens - self.kv_used)
        if count <= 0:
            return 0
        sequence.read += count
        self.kv_used += count
        if not sequence.unread:
            done.append(sequence)
        return count

    def _begin(self, sequence: Sequence) -> bool:
        """The prompt is read and a token came with it; whether it is the last one."""
        del self._reading[sequence]
        sequence.state, sequence.started = State.DECODE, self._steps
        self.decoding[sequence] = None
        self._decode_kv += sequence.read
        remaining = sequence.output - sequence.kept - 1
        if remaining <= 0:
            self._leave(sequence)
            sequence.state = State.DONE
            return True
        self._ends[self._steps + remaining][sequence] = None
        return False

    def _leave(self, sequence: Sequence) -> None:
        """Give slot and cache up."""
        del self._running[sequence]
        if sequence in self.decoding:
            del self.decoding[sequence]
            held = sequence.read + self._steps - sequence.started
            self._decode_kv -= held
            end = sequence.started + sequence.output - sequence.kept - 1
            if end in self._ends:
                self._ends[end].pop(sequence, None)
        else:
            self._reading.pop(sequence, None)
            held = sequence.read
        self.kv_used -= held
