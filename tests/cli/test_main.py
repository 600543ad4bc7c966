"""The command line as a user meets it."""

import json
from pathlib import Path

import pytest

from tests.support.serve import headway_command


def test_version() -> None:
    """One line."""
    ended = headway_command(["version"])
    assert ended.returncode == 0
    assert ended.stdout.startswith("headway ")


def test_every_command_has_help() -> None:
    """The first page names them all."""
    text = headway_command(["--help"]).stdout
    for name in ("serve", "dispatch", "worker", "batch", "usage", "queue", "policy", "settings"):
        assert name in text


def test_a_fault_is_one_sentence(tmp_path: Path) -> None:
    """A wrong policy: exit 78 and no traceback."""
    policy = tmp_path / "p.yaml"
    policy.write_text("targets: {}\n")
    ended = headway_command(["serve", "--policy", str(policy), "--data-dir", str(tmp_path)])
    assert ended.returncode == 78
    assert ended.stderr.startswith("headway: ")
    assert "Traceback" not in ended.stderr


def test_bench_is_mounted() -> None:
    """`headway bench --help` is the benchmarks' own help."""
    assert "demo" in headway_command(["bench", "--help"]).stdout


@pytest.mark.parametrize("arguments", [["queue", "stats"], ["usage"], ["batch", "list"]])
def test_without_a_gateway_it_says_so(tmp_path: Path, arguments: list[str]) -> None:
    """Exit 78, and what to do."""
    ended = headway_command([*arguments, "--data-dir", str(tmp_path)])
    assert ended.returncode == 78
    assert "headway serve" in ended.stderr


def test_settings_mask_secrets() -> None:
    """Names and values of all, secrets as stars."""
    ended = headway_command(["settings", "--json"], {"HEADWAY_API_KEY": "hw-secret"})
    shown = json.loads(ended.stdout)
    assert shown["port"] == "8000"
    assert "hw-secret" not in ended.stdout
    table = headway_command(["settings"], {"HEADWAY_PORT": "9", "COLUMNS": "200"}).stdout
    assert "HEADWAY_PORT" in table
    assert "environment" in table
