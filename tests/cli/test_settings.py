"""What ``headway settings`` shows."""

import pytest
from typer.testing import CliRunner

from gateway.cli.main import app
from gateway.core.settings import Settings


def test_all_settings_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every field, with the masked value of a secret."""
    monkeypatch.setenv("HEADWAY_API_KEY", "hw-secret")
    shown = CliRunner().invoke(app, ["settings", "--json"]).stdout
    assert all(f'"{name}"' in shown for name in Settings.model_fields)
    assert "hw-secret" not in shown
