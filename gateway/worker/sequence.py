"""One sequence: everything the engine knows of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from gateway.core.errors import HeadwayError
from gateway.worker.detokenize import Detokenizer
from gateway.worker.sampling import SamplingParams


class State(Enum):
    """Waiting for a slot, prompt being read, decoding, ended."""

    WAITING = auto()
    PREFILL = auto()
    RUNNING = auto()
    DONE = auto()


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token with its log probability and the likeliest alternatives."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to a sequence in a step: text, and at the end a reason or an error."""

    sequence: "Sequence"
    text: str = ""
    tokens: int = 0
    logprob: TokenLogprob | None = None
    finish_reason: str | None = None
    error: HeadwayError | None = None

    @property
    def last(self) -> bool:
        """Whether nothing follows."""
        return self.finish_reason is not None or self.error is not None


@dataclass(eq=False, slots=True)
class Sequence:
    """A prompt and what was generated for it.

    ``priority`` lower is sooner, None means that nobody said. ``sink`` receives the events on the
    event loop's side. ``index`` is the choice among those of the same prompt, ``place`` the choice
    in the whole answer. ``computed`` tokens are in the cache.
    """

    prompt: list[int]
    max_tokens: int
    sampling: SamplingParams
    priority: int | None
    sink: Callable[[Event], None]
    index: int = 0
    place: int = 0
    poisoned: bool = False
    arrival: int = 0
    state: State = State.WAITING
    slot: int = -1
    computed: int = 0
    output: list[int] = field(default_factory=list)
    text: Detokenizer = field(init=False)

    def __post_init__(self) -> None:
        self.text = Detokenizer(self.sampling.stop)

    @property
    def length(self) -> int:
        """Tokens so far."""
        return len(self.prompt) + len(self.output)

    @property
    def unread(self) -> int:
        """Tokens to be read before the next one: of the prompt, or of all after a lost slot."""
        return self.length - self.computed

    def piece(self, start: int, count: int) -> list[int]:
        """``count`` tokens from position ``start``."""
        if not self.output:
            return self.prompt[start : start + count]
        return (self.prompt + self.output)[start : start + count]

    @property
    def interactive(self) -> bool:
        """Whether somebody waits for it and said so."""
        return self.priority is not None and self.priority <= 0

    @property
    def offline(self) -> bool:
        """Whether nobody waits for it and the caller said so."""
        return self.priority is not None and self.priority > 0

    @property
    def last_token(self) -> int:
        """The newest token."""
        return self.output[-1] if self.output else self.prompt[-1]
