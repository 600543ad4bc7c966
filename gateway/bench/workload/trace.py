"""Interactive calls and offline rows as lengths in tokens: drawn, or read from a file."""

import csv
import gzip
import io
import json
import math
import random
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gateway.core.errors import ConfigError

_LATEST = 1e9
_LONGEST = 10**9
_NO_TRACE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    OverflowError,
    RecursionError,
    csv.Error,
    zlib.error,
)


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A call that comes ``at`` seconds after the start, ``prompt`` tokens in, ``output`` out."""

    at: float
    prompt: int
    output: int


@dataclass(frozen=True, slots=True)
class Lengths:
    """Log-normal lengths by mean and sigma of the logarithm; bounds, ``shortest`` of prompts."""

    prompt: float
    prompt_sigma: float
    output: float
    output_sigma: float
    longest: int = 8192
    shortest: int = 1

    def with_means(self, prompt: int, output: int) -> "Lengths":
        """Of the same shape, about as long as told, and never more than eight times as long."""
        longest = min(self.longest, 8 * max(prompt, output))
        return replace(self, prompt=prompt, output=output, longest=longest)

    def draw(self, source: random.Random) -> tuple[int, int]:
        """Tokens in and out of one call."""
        prompt = self._one(source, self.prompt, self.prompt_sigma)
        return max(self.shortest, prompt), self._one(source, self.output, self.output_sigma)

    def _one(self, source: random.Random, mean: float, sigma: float) -> int:
        drawn = source.lognormvariate(math.log(mean) - sigma * sigma / 2, sigma)
        return max(1, min(self.longest, round(drawn)))


#: Chat: the means and shape of the Azure conversation trace of 2023.
CHAT = Lengths(1180, 0.61, 252, 0.98)
#: Offline: the means and shape of summaries of arXiv papers.
SUMMARIES = Lengths(2572, 0.32, 303, 1.07)


def arrivals(
    rate: float, seconds: float, lengths: Lengths, seed: int, *, cv: float = 1.0
) -> list[TracedCall]:
    """``rate`` calls a second for ``seconds``; gaps with the variation ``cv``, 1 for Poisson."""
    source = random.Random(seed)  # noqa: S311 - a load, not a secret
    shape = 1 / cv**2
    at, calls = 0.0, []
    while (at := at + source.gammavariate(shape, 1 / (rate * shape))) < seconds:
        calls.append(TracedCall(at, *lengths.draw(source)))
    return calls


def backlog(lengths: Lengths, seed: int) -> Iterator[tuple[int, int]]:
    """Offline rows without end."""
    source = random.Random(seed)  # noqa: S311 - a load, not a secret
    while True:
        yield lengths.draw(source)


def read_trace(path: Path, *, start: float = 0.0, seconds: float = math.inf) -> list[TracedCall]:
    """The calls of a CSV or JSONL file, gzipped or not, that came in a window, from its start.

    Columns: ``arrival_s``, ``prompt_tokens``, ``output_tokens``. Raises ConfigError.
    """
    try:
        calls = [_call(row) for row in _rows(path)]
    except _NO_TRACE as error:
        raise ConfigError(f"not a trace: {type(error).__name__}: {error}", file=path) from None
    kept = [call for call in calls if start <= call.at < start + seconds]
    if not kept:
        raise ConfigError("there is no call in this window", file=path)
    return sorted(
        (TracedCall(c.at - start, c.prompt, c.output) for c in kept), key=lambda call: call.at
    )


def rate_of(calls: list[TracedCall]) -> float:
    """Calls a second, from the first to the last. Raises ConfigError when they come all at once."""
    span = calls[-1].at - calls[0].at
    if span <= 0:
        raise ConfigError("A rate needs calls at two moments at least.")
    return (len(calls) - 1) / span


def _rows(path: Path) -> Iterable[dict[str, Any]]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    if text.lstrip().startswith("{"):
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return csv.DictReader(io.StringIO(text))


def _call(row: dict[str, Any]) -> TracedCall:
    at = float(row["arrival_s"])
    prompt, output = int(row["prompt_tokens"]), int(row["output_tokens"])
    if not (0 <= at <= _LATEST and 1 <= prompt <= _LONGEST and 0 <= output <= _LONGEST):
        raise ValueError(f"no call: {at:g} s, {prompt} tokens in, {output} out")
    return TracedCall(at, prompt, max(1, output))
