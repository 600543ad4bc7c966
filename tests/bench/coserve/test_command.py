"""``headway bench coserve``."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.bench.cli import app
from gateway.bench.coserve.command import lengths
from gateway.bench.workload.trace import CHAT
from gateway.core.errors import ConfigError

SHORT = ["coserve", "--seconds", "45", "--slices", "1"]
QUICK = [*SHORT, "--no-trials"]


def test_the_report_has_every_scene_and_the_plot_its_arms(tmp_path: Path) -> None:
    """For programs; the picture beside it."""
    plot, file = tmp_path / "arms.svg", tmp_path / "arms.json"
    asked = [*QUICK, "--json", "--plot", str(plot), "--report", str(file)]
    found = CliRunner().invoke(app, asked, catch_exceptions=False)
    report = json.loads(found.output)
    assert report == json.loads(file.read_text())
    assert set(report["scenes"]) == {"full load", "half load", "bursts"}
    assert report["scenes"]["full load"]["Headway"]["harvest"]["mean"] > 0
    assert all({"promise", "found", "ok"} == set(check) for check in report["checks"])
    assert "Headway" in plot.read_text()


def test_a_trace_takes_the_place_of_drawn_calls(tmp_path: Path) -> None:
    """One scene, its windows as slices; too short a trace is said."""
    trace = tmp_path / "t.csv"
    rows = [f"{at},300,20" for at in range(45)]
    trace.write_text("\n".join(["arrival_s,prompt_tokens,output_tokens", *rows]))
    found = CliRunner().invoke(app, [*QUICK, "--trace", str(trace)], catch_exceptions=False)
    assert "full load" in found.output
    assert "bursts" not in found.output
    with pytest.raises(ConfigError, match="no call"):
        CliRunner().invoke(
            app, [*QUICK, "--trace", str(trace), "--slices", "2"], catch_exceptions=False
        )


def test_lengths_are_tokens_in_and_out() -> None:
    """In the shape of the trace; anything else is said."""
    assert lengths(None, CHAT) == CHAT
    short = lengths("48:12", CHAT)
    assert (short.prompt, short.output, short.output_sigma) == (48, 12, CHAT.output_sigma)
    for odd in ("48", "a:b", "1:2:3", "0:12", "48:-1", f"48:{10**400}"):
        with pytest.raises(ConfigError, match="in and out"):
            lengths(odd, CHAT)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--share", "0.3"], "without --target there is no use for --share"),
        (["--gateway-key", "k", "--cap", "9"], "no use for --gateway-key, --cap"),
        (["--gateway", "http://x/v1", "--priority"], "no use for --priority, --gateway"),
        (
            ["--target", "http://x/v1", "--engines", "2", "--no-trials"],
            "with --target .* for --engines, --trials",
        ),
        (["--report", "{}/x.json"], "its folder does not exist"),
        (["--target", "http://x/v1", "--plot", "{}/x.svg"], "its folder does not exist"),
        (["--target", "http://x/v1", "--share", "0.3", "--trace", "{}"], "a rate of its own"),
        (["--trace", "{}", "--rate", "3"], "with --trace there is no use for --rate"),
        (
            ["--target", "http://x/v1", "--trace", "{}", "--chat", "48:12"],
            "with --trace there is no use for --chat",
        ),
        (
            ["--target", "http://x/v1", "--share", "0.3", "--rate", "3"],
            "with --share there is no use for --rate",
        ),
        (
            ["--target", "http://x/v1", "--gateway-key", "k"],
            "without --gateway there is no use for --gateway-key",
        ),
        ([], "trials take --seconds 200 at least; or give --no-trials"),
        (["--seconds", "80000", "--rate", "100"], "at most 1,000,000 calls, not 8,000,000"),
        (
            ["--target", "http://x/v1", "--seconds", "80000", "--rate", "100"],
            "at most 1,000,000 calls",
        ),
    ],
)
def test_options_that_do_not_go_together_are_said(
    asked: list[str], said: str, tmp_path: Path
) -> None:
    """Before anything runs."""
    trace = tmp_path / "t.csv"
    trace.write_text("arrival_s,prompt_tokens,output_tokens\n1,300,20")
    options = [part.format(trace) for part in asked]
    with pytest.raises(ConfigError, match=said):
        CliRunner().invoke(app, [*SHORT, *options], catch_exceptions=False)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("rate", ("inf", "nan", "10001")),
        ("seconds", ("inf", "nan")),
        ("engines", ("65", "999999999999")),
        ("slices", ("1001",)),
        ("price", ("inf", "nan", "1e10")),
        ("itl-target", ("inf", "nan", "11")),
        ("slo", ("inf", "nan")),
        ("share", ("inf", "nan")),
        ("max-num-seqs", ("1000001",)),
        ("max-num-batched-tokens", ("1000001",)),
        ("flood", ("1000001",)),
        ("cap", ("1000001",)),
    ],
)
def test_numbers_that_cannot_be_meant_are_refused(name: str, values: tuple[str, ...]) -> None:
    """As wrong use of the command, with the option's name, and before anything runs."""
    for value in values:
        found = CliRunner().invoke(app, [*QUICK, f"--{name}", value])
        assert found.exit_code == 2, found.output
        assert f"--{name}" in found.stderr


def test_two_calls_are_a_trace(tmp_path: Path) -> None:
    """Few figures, of which none is odd, on paper and for programs; also where none is judged."""
    trace, file, plot = (tmp_path / name for name in ("t.csv", "arms.json", "arms.svg"))
    head = "arrival_s,prompt_tokens,output_tokens"
    for rows in ("1,300,20\n25,300,20", "1,300,20\n2,300,20", "25,300,1\n26,300,1"):
        trace.write_text(f"{head}\n{rows}\n")
        asked = [*SHORT, "--trace", str(trace), "--report", str(file), "--plot", str(plot)]
        found = CliRunner().invoke(app, asked, catch_exceptions=False)
        assert (found.exit_code, "nan" in found.output, "…" in found.output) == (0, False, False)
        report = json.loads(file.read_text(), parse_constant=pytest.fail)
        assert report["scenes"]["full load"]["Headway"]["calls"]["mean"] <= 2
        assert plot.read_text().startswith("<svg")


def test_an_engine_too_small_for_both_lanes_has_figures() -> None:
    """Where there is nothing to compare, that is said."""
    small = ["--max-num-seqs", "1", "--max-num-batched-tokens", "1"]
    found = CliRunner().invoke(app, [*QUICK, *small, "--json"], catch_exceptions=False)
    report = json.loads(found.output, parse_constant=pytest.fail)
    assert any("nothing to compare" in check["found"] for check in report["checks"])
