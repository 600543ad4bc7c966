"""The processes' commands."""

import pytest

from tests.support.serve import headway_command


@pytest.mark.parametrize("command", ["serve", "dispatch", "worker"])
def test_options_are_explained(command: str) -> None:
    """--help starts nothing and names the policy option."""
    ended = headway_command([command, "--help"])
    assert ended.returncode == 0
    assert "--policy" in ended.stdout


def test_a_wrong_option_is_refused() -> None:
    """Exit 2 as shells expect."""
    assert headway_command(["serve", "--no-such"]).returncode == 2
