"""Tables of the command line."""

import pytest

from gateway.cli.tables import show

_NAME = "a-model-with-a-name-" * 8 + "[end]"


def test_names_are_whole_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """On one line each, whatever the width of the terminal may be; brackets are text."""
    show(["model", "tenant", "n"], [[_NAME, "t" * 60, "1"]])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert _NAME in lines[3]


def test_names_are_folded_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every character is there, over as many lines as it takes."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    show(["model"], [[_NAME]])
    shown = capsys.readouterr().out
    cells = [line.strip("│ ") for line in shown.splitlines() if line.startswith("│")]
    assert "".join(cells) == _NAME
    assert max(map(len, cells)) <= 56
