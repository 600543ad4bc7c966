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
    for odd in ("48", "a:b", "1:2:3"):
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
