"""Loads as published, drawn or read."""

import gzip
import json
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from statistics import mean, pstdev

import pytest

from gateway.bench.workload.trace import (
    CHAT,
    SUMMARIES,
    TracedCall,
    arrivals,
    backlog,
    rate_of,
    read_trace,
)
from gateway.core.errors import ConfigError


def test_drawn_calls_have_the_published_means() -> None:
    """Rate and lengths of the chat trace; Poisson gaps."""
    calls = arrivals(5, 2000, CHAT, seed=1)
    assert rate_of(calls) == pytest.approx(5, rel=0.05)
    assert mean(c.prompt for c in calls) == pytest.approx(1180, rel=0.05)
    assert mean(c.output for c in calls) == pytest.approx(252, rel=0.05)
    gaps = [b.at - a.at for a, b in pairwise(calls)]
    assert pstdev(gaps) / mean(gaps) == pytest.approx(1, rel=0.05)


def test_bursts_have_the_same_rate_and_other_gaps() -> None:
    """Four times as uneven."""
    calls = arrivals(5, 5000, CHAT, seed=2, cv=4)
    gaps = [b.at - a.at for a, b in pairwise(calls)]
    assert rate_of(calls) == pytest.approx(5, rel=0.15)
    assert pstdev(gaps) / mean(gaps) == pytest.approx(4, rel=0.1)


def test_a_seed_gives_the_same_load_again() -> None:
    """Arms are compared on the same calls."""
    assert arrivals(5, 20, CHAT, seed=3) == arrivals(5, 20, CHAT, seed=3)
    assert arrivals(5, 20, CHAT, seed=3) != arrivals(5, 20, CHAT, seed=4)
    rows = list(islice(backlog(SUMMARIES, 1), 4000))
    assert rows == list(islice(backlog(SUMMARIES, 1), 4000))
    assert mean(p for p, _ in rows) == pytest.approx(2572, rel=0.05)
    assert mean(o for _, o in rows) == pytest.approx(303, rel=0.1)


def test_a_load_can_be_shorter_in_the_same_shape() -> None:
    """Other means; no prompt below the template of a server, none far above the mean."""
    short = replace(CHAT.with_means(48, 12), shortest=31)
    calls = arrivals(5, 2000, short, seed=1)
    assert mean(c.output for c in calls) == pytest.approx(12, rel=0.06)
    assert min(c.prompt for c in calls) == 31
    assert max(max(c.prompt, c.output) for c in calls) <= 384
    assert mean(c.prompt for c in calls) == pytest.approx(50, rel=0.05)


def test_files_are_read_from_a_window(tmp_path: Path) -> None:
    """CSV and gzipped JSONL say the same; times count from the window's start."""
    rows = [(1.0, 10, 5), (3.0, 20, 0), (9.0, 30, 7)]
    plain = tmp_path / "calls.csv"
    head = "arrival_s,prompt_tokens,output_tokens,kind"
    plain.write_text("\n".join([head, *(f"{a},{p},{o},x" for a, p, o in rows)]))
    lines = [
        json.dumps({"arrival_s": a, "prompt_tokens": p, "output_tokens": o}) for a, p, o in rows
    ]
    packed = tmp_path / "calls.jsonl.gz"
    packed.write_bytes(gzip.compress("\n".join(lines).encode()))
    wanted = [TracedCall(1.0, 20, 1), TracedCall(7.0, 30, 7)]
    assert read_trace(plain, start=2) == read_trace(packed, start=2) == wanted
    assert read_trace(plain, start=2, seconds=5) == wanted[:1]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", '{"arrival_s": 1}', "{no json"])
def test_what_is_no_trace_is_said(tmp_path: Path, text: str) -> None:
    """With the file's name."""
    file = tmp_path / "t.csv"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"t\.csv"):
        read_trace(file)
    with pytest.raises(ConfigError):
        read_trace(tmp_path / "none.csv")
