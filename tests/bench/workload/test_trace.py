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


_HEAD = "arrival_s,prompt_tokens,output_tokens\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a,b\n1,2\n",
        '{"arrival_s": 1}',
        "{no json",
        '{"a": ' + "[" * 100_000,
        '{"arrival_s": 1, "prompt_tokens": 1e999, "output_tokens": 1}',
        *(
            f"{_HEAD}0,10,10\n{row}\n"
            for row in (
                "0,-5,-1",
                "3,0,0",
                "3,5,-1",
                "-1,5,5",
                "nan,5,5",
                "inf,5,5",
                "1,5,x",
                "1,5",
                f"1,{10**30},5",
                "1,5," + "5" * 200_000,
            )
        ),
    ],
)
def test_what_is_no_trace_is_said(tmp_path: Path, text: str) -> None:
    """With the file's name."""
    file = tmp_path / "t.csv"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"t\.csv"):
        read_trace(file)
    with pytest.raises(ConfigError):
        read_trace(tmp_path / "none.csv")


def test_a_broken_archive_is_said(tmp_path: Path) -> None:
    """Whatever is wrong with it."""
    whole = gzip.compress(_HEAD.encode() * 1000)
    file = tmp_path / "t.csv.gz"
    for data in (b"", b"no gzip", whole[:-9], whole[:12] + b"\xff" * 20):
        file.write_bytes(data)
        with pytest.raises(ConfigError, match=r"t\.csv"):
            read_trace(file)


def test_a_mark_of_the_byte_order_is_no_part_of_a_name(tmp_path: Path) -> None:
    """As spreadsheets write it."""
    file = tmp_path / "t.csv"
    file.write_text(f"\ufeff{_HEAD}1,2,3\n", encoding="utf-8")
    assert read_trace(file) == [TracedCall(1, 2, 3)]


@pytest.mark.parametrize("calls", [[TracedCall(1, 2, 3)], [TracedCall(1, 2, 3)] * 5])
def test_calls_of_one_moment_have_no_rate(calls: list[TracedCall]) -> None:
    """That is said, and not taken for none."""
    with pytest.raises(ConfigError, match="two moments"):
        rate_of(calls)
