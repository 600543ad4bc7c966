"""``headway plan``."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.main import app
from gateway.core.errors import ConfigError

JOB = ["plan", "--in", "2572", "--out", "303"]


def _plan(*arguments: str) -> str:
    found = CliRunner().invoke(app, [*JOB, *arguments], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.output


def test_items_or_tokens() -> None:
    """Both ask for the same job."""
    by_items = json.loads(_plan("--items", "1000", "--deadline", "8h", "--json"))
    by_tokens = json.loads(_plan("--tokens", "2875000", "--deadline", "8h", "--json"))
    assert by_items == by_tokens
    assert by_items["deadline_seconds"] == 28_800


def test_it_warns_in_words() -> None:
    """For people."""
    assert "Warning" in _plan("--items", "1000000", "--deadline", "1h", "--workers", "1")


def test_the_engine_may_be_measured_and_the_load_a_trace(tmp_path: Path) -> None:
    """Everything that is known is used."""
    trace = tmp_path / "t.csv"
    trace.write_text("arrival_s,prompt_tokens,output_tokens\n0,1000,100\n1,1200,300\n")
    options = ["--profile", "h200-8b", "--fit", "5,0.02,0.00002,1", "--price", "4", "--json"]
    found = json.loads(_plan("--items", "9", "--interactive-trace", str(trace), *options))
    assert found["step_ms_coefficients"]["a"] == 5
    assert found["interactive_workers"] > 0
    assert found["source"] == "measured fit"


@pytest.mark.parametrize(
    "arguments",
    [[], ["--items", "5", "--tokens", "5"], ["--items", "5", "--deadline", "soon"]],
)
def test_a_question_that_makes_no_sense_is_refused(arguments: list[str]) -> None:
    """With a sentence."""
    with pytest.raises(ConfigError):
        CliRunner().invoke(app, [*JOB, *arguments], catch_exceptions=False)
