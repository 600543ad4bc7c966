"""``headway queue``: look into the schedule."""

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from gateway.core.settings import load_settings

DataDir = Annotated[Path | None, typer.Option("--data-dir", help="The gateway's data directory.")]
_BROKEN = 3

app = typer.Typer(help="Look into the queue.", no_args_is_help=True)


@app.command()
def stats(data_dir: DataDir = None) -> None:
    """Counters of every shard as JSON, one shard a line."""
    from gateway.bootstrap.views import queue_stats

    for shard, counters in asyncio.run(queue_stats(load_settings(data_dir=data_dir))).items():
        typer.echo(json.dumps({"shard": shard, **counters}))


@app.command()
def audit(data_dir: DataDir = None) -> None:
    """Check the queue's invariants now; exit 3 when one is violated."""
    from gateway.bootstrap.views import queue_audit

    found = asyncio.run(queue_audit(load_settings(data_dir=data_dir)))
    for shard, violations in found.items():
        typer.echo(f"{shard}: {'; '.join(violations) or 'ok'}")
    if any(found.values()):
        raise typer.Exit(_BROKEN)
