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


_USAGE = 2
_WRONG = [
    "",
    "--items 5 --tokens 5",
    "--items 5 --deadline soon",
    "--items 5 --deadline 0",
    f"--items 5 --deadline {'9' * 400}h",
    "--tokens inf",
    "--tokens nan",
    "--tokens 1e300 --deadline 1h",
    f"--items {10**32} --deadline 1h",
    "--items 5 --out-cv 1e200",
    "--items 5 --out-cv nan",
    "--items 5 --in nan",
    "--items 5 --out inf",
    "--items 5 --model 0,0,0,0",
    "--items 5 --model 32,8,128,nan",
    "--items 5 --model 32,8,128,-8",
    "--items 5 --interactive-rate inf",
    "--items 5 --interactive-rate nan",
    "--items 5 --interactive-rate 1 --interactive-in nan",
    "--items 5 --fit nan,1,1,1",
    "--items 5 --fit inf,1,1,1",
    "--items 5 --price inf",
    "--items 5 --price nan",
    f"--items 5 --workers {10**400}",
    f"--items 5 --gpus-per-worker {10**400}",
    f"--items 5 --max-num-batched-tokens {10**400}",
    f"--items 5 --max-num-batched-tokens {10**400} --max-num-seqs {10**400}",
    "--items 5 --fit=-1,1,1,1",
]


@pytest.mark.parametrize("arguments", _WRONG)
def test_a_question_that_makes_no_sense_is_refused(arguments: str) -> None:
    """With a sentence, ours or that of the command line's parser."""
    found = CliRunner().invoke(app, [*JOB, *arguments.split()])
    assert isinstance(found.exception, ConfigError) or found.exit_code == _USAGE


def test_a_trace_of_one_call_needs_a_rate(tmp_path: Path) -> None:
    """It is not ignored."""
    trace = tmp_path / "t.csv"
    trace.write_text("arrival_s,prompt_tokens,output_tokens\n0,1000,100\n")
    options = ["--items", "9", "--interactive-trace", str(trace), "--json"]
    with pytest.raises(ConfigError, match="rate"):
        CliRunner().invoke(app, [*JOB, *options], catch_exceptions=False)
    assert json.loads(_plan(*options, "--interactive-rate", "1"))["interactive_workers"] > 0


def test_json_holds_numbers_only() -> None:
    """Also of a job that never ends."""
    text = _plan("--items", "9", "--interactive-rate", "1000", "--workers", "1", "--json")
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text)["fleet"]["seconds"] is None
