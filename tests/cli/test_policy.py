"""``headway policy``."""

import json
from pathlib import Path

from tests.support.serve import headway_command


def test_a_good_policy_passes(tmp_path: Path) -> None:
    """Its targets are counted."""
    policy = tmp_path / "p.yaml"
    policy.write_text("targets:\n  a: {base_url: http://127.0.0.1:1/v1, models: [m]}\n")
    ended = headway_command(["policy", "check", str(policy)])
    assert ended.returncode == 0
    assert "1 target" in ended.stdout


def test_a_doubtful_address_is_a_warning(tmp_path: Path) -> None:
    """The policy passes; what is probably meant stands beside it."""
    policy = tmp_path / "p.yaml"
    policy.write_text("targets:\n  a: {base_url: http://h/v1/chat/completions, models: [m]}\n")
    ended = headway_command(["policy", "check", str(policy)])
    assert ended.returncode == 0
    assert "warning: targets.a.base_url: it names an endpoint" in ended.stderr
    assert "http://h/v1 is meant" in ended.stderr


def test_a_wrong_key_is_told_with_its_line(tmp_path: Path) -> None:
    """File and line, exit 78."""
    policy = tmp_path / "p.yaml"
    policy.write_text("targets:\n  a: {base_url: http://h/v1, models: [m]}\nhead_hole: 3\n")
    ended = headway_command(["policy", "check", str(policy)])
    assert ended.returncode == 78
    assert f"{policy}:3" in ended.stderr


def test_show_has_defaults_and_no_secrets(tmp_path: Path) -> None:
    """The whole policy as JSON."""
    policy = tmp_path / "p.yaml"
    policy.write_text(
        "targets:\n  a: {base_url: http://127.0.0.1:1/v1, models: [m], api_key: sk-very-secret}\n"
    )
    ended = headway_command(["policy", "show", str(policy)])
    assert "sk-very-secret" not in ended.stdout
    assert json.loads(ended.stdout)["targets"]["a"]["lanes"]["batch"]["max_in_flight"] == 64
