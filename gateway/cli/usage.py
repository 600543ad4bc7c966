"""``headway usage``: tokens per lane, model and tenant."""

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.tables import show
from gateway.core.settings import load_settings

_COLUMNS = (
    "lane",
    "model",
    "tenant",
    "requests",
    "failed",
    "estimated",
    "prompt",
    "completion",
    "wasted",
)


def usage(
    hours: Annotated[int, typer.Option(min=1, help="How many hours back.")] = 24,
    tenant: Annotated[str | None, typer.Option(help="Only this tenant.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
    records: Annotated[
        bool, typer.Option("--records", help="Each call as a line of JSON, from this machine.")
    ] = False,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="The gateway's data directory.")
    ] = None,
) -> None:
    """What was used: delivered and billed once; computed twice is shown as wasted."""
    from gateway.bootstrap.views import records_of_hours, usage_of_hours

    settings = load_settings(data_dir=data_dir)
    if records:
        for record in records_of_hours(settings, hours, tenant):
            typer.echo(json.dumps(record.to_json()))
        return
    report = asyncio.run(usage_of_hours(settings, hours, tenant))
    if as_json:
        typer.echo(json.dumps(report.to_json()))
        return
    rows: list[list[str]] = []
    for row in report.rows:
        counts = (row.requests, row.failed, row.estimated)
        tokens = (row.usage.prompt, row.usage.completion, row.wasted.total)
        rows.append([row.lane, row.model, row.tenant, *(f"{n:,}" for n in (*counts, *tokens))])
    show(_COLUMNS, rows)
