"""``headway settings``: what can be set, what it is, and where that came from."""

import json
from typing import Annotated

import typer

from gateway.cli.tables import show as list_rows
from gateway.core.settings import Settings, load_settings


def show(
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """List every setting with its value (secrets masked), source and meaning."""
    settings = load_settings()
    if as_json:
        typer.echo(json.dumps({name: _value(settings, name) for name in Settings.model_fields}))
        return
    rows = [
        (
            f"HEADWAY_{name.upper()}",
            _value(settings, name),
            "environment" if name in settings.model_fields_set else "default",
            field.description or "",
        )
        for name, field in Settings.model_fields.items()
    ]
    list_rows(("setting", "value", "source", "meaning"), rows)


def _value(settings: Settings, name: str) -> str:
    value = getattr(settings, name)
    return "" if value is None else str(value)
