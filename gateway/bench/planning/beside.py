"""An engine that people share with offline rows, as the dispatcher's pacer leaves it to them.

The pacer lets so many rows run that the mean step stays a little under the target for the gap
between tokens, and has one offline prompt read at a time, when no call waits for its first token; a
prompt that has just begun makes way and is read again. So people take more than their own tokens:
between two of their steps there is room only for so much.
"""

import math
from dataclasses import dataclass

from gateway.bench.planning.steady import Shape, Steady
from gateway.core.load import ITL_TARGET
from gateway.simulator.profile import EngineProfile

# Of the target, what the mean gap comes to under the pacer; and the rows that it always lets run.
_AIM = 0.93
_FLOOR = 4.0
# A prompt makes way in the first half of its reading, and if that is not a matter of a moment.
_EARLY = 0.5
_QUICK, _SLOW = 0.1, 0.2
# Of a prompt that makes way, what was read for nothing: half of the half, what is read until the
# word of the caller comes, and the step then under way; a whole step at least.
_LOST = 0.5
_LONGEST_STEP = 5.0
_ROUNDS, _HALVINGS = 100, 30
_NEAR = 1e-6


@dataclass(frozen=True, slots=True)
class People:
    """Calls a second at one engine, and their lengths."""

    rate: float
    shape: Shape


@dataclass(frozen=True, slots=True)
class _Mix:
    """The mean step of ``seconds``: who is in it, and its parts in milliseconds.

    ``reading`` is the share of time in which offline prompts are read, ``free`` that in which no
    call waits for its first token.
    """

    seconds: float
    decoding: float
    cached: float
    prompts: float
    reading: float
    free: float
    parts: dict[str, float]


def beside(
    profile: EngineProfile, shape: Shape, people: People, rows: float | None = None
) -> Steady:
    """The steady state at as many rows as the pacer lets run, or at ``rows`` when that is less.

    ``limit`` may be ``latency`` (the gap between tokens) or ``first tokens`` too.
    """
    low, high, limit = min(_FLOOR, rows or _FLOOR), float(profile.max_num_seqs), "latency"
    if rows is not None and rows <= high:
        high, limit = max(low, rows), "asked"
    found = _over(profile, _mix(profile, shape, people, high))
    if found is not None:
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            over = _over(profile, _mix(profile, shape, people, middle))
            low, high, found = (low, middle, over) if over else (middle, high, found)
        high, limit = low, found
    elif limit != "asked":
        limit = "slots"
    mix = _mix(profile, shape, people, high)
    whole = sum(mix.parts.values())
    spent = {name: part / whole for name, part in mix.parts.items()}
    return Steady(high / (shape.output * mix.seconds), high, mix.seconds, limit, spent)


def _over(profile: EngineProfile, mix: _Mix) -> str | None:
    """What such a mix has too much of."""
    if mix.seconds > _AIM * ITL_TARGET:
        return "latency"
    if mix.cached > profile.kv_tokens:
        return "cache"
    if mix.decoding > profile.max_num_seqs:
        return "slots"
    if mix.decoding + mix.prompts > profile.max_num_batched_tokens:
        return "step budget"
    return "first tokens" if mix.reading > mix.free else None


def _mix(profile: EngineProfile, shape: Shape, people: People, rows: float) -> _Mix:
    """The step that ``rows`` and the calls that come during it make, found by trying."""
    seconds = ITL_TARGET
    for _ in range(_ROUNDS):
        mix = _next(profile, shape, people, rows, seconds)
        if abs(mix.seconds - seconds) < _NEAR:
            break
        seconds = mix.seconds
    return mix


def _next(
    profile: EngineProfile, shape: Shape, people: People, rows: float, seconds: float
) -> _Mix:
    """The step that follows if steps take ``seconds``."""
    calls, rate = people.shape, people.rate
    talking = rate * calls.output * seconds
    decoding, items = rows + talking, rows / (shape.output * seconds)
    cached = rows * shape.context + talking * calls.context
    room = max(1.0, profile.max_num_batched_tokens - decoding)
    theirs, ours = _pieces(calls.prompt, room), _pieces(shape.prompt, room)
    cache, host = profile.c * cached, profile.h + profile.row * decoding
    piece = min(room, shape.prompt / ours)
    step = (max(profile.a, profile.b * (decoding + piece)) + cache + host) / 1000
    lost = max(_LOST, min(1.0, room / shape.prompt))
    again = 1 + lost * _made_way(rate, ours * step)
    prompts = seconds * (rate * calls.prompt + items * shape.prompt * again)
    share = min(1.0, seconds * (rate * theirs + items * ours * again))
    parts = {"weights": 0.0, "computing": 0.0, "cache": cache, "host": host}
    for part, tokens in ((share, decoding + prompts / share), (1 - share, decoding)):
        computes = profile.b * tokens > profile.a
        parts["computing" if computes else "weights"] += part * max(profile.a, profile.b * tokens)
    return _Mix(
        seconds=min(_LONGEST_STEP, sum(parts.values()) / 1000),
        decoding=decoding,
        cached=cached,
        prompts=prompts,
        reading=items * ours * again * step,
        free=math.exp(-rate * (theirs * step + seconds / 2)),
        parts=parts,
    )


def _pieces(prompt: float, room: float) -> float:
    """Steps that read a prompt; the last one is not full."""
    return max(1.0, prompt / room + 0.5)


def _made_way(rate: float, reading: float) -> float:
    """How often a prompt that takes so many seconds makes way for a call."""
    slow = min(1.0, max(0.0, (reading - _QUICK) / (_SLOW - _QUICK)))
    return slow * rate * _EARLY * reading
