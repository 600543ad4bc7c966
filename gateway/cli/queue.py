"""``headway queue``: look into the schedule, and change it."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from gateway.core.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.bootstrap.queue_admin import QueueAdmin, Selection

_T = TypeVar("_T")
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="The gateway's data directory.")]
Batch = Annotated[str | None, typer.Argument(help="A batch or a job.", metavar="[ID]")]
Tenant = Annotated[str | None, typer.Option("--tenant", help="All work of one tenant.")]
All = Annotated[bool, typer.Option("--all", help="All work.")]
_BROKEN = 1

app = typer.Typer(help="Look into the queue, and change it.", no_args_is_help=True)


@app.command()
def stats(data_dir: DataDir = None) -> None:
    """Counters of every shard as JSON, one shard a line; then what is paused, if anything is."""
    from gateway.bootstrap.views import queue_pauses, queue_stats

    settings = load_settings(data_dir=data_dir)
    for shard, counters in asyncio.run(queue_stats(settings)).items():
        typer.echo(json.dumps({"shard": shard, **counters}))
    if paused := asyncio.run(queue_pauses(settings)):
        typer.echo(json.dumps({"paused": paused}))


@app.command()
def audit(data_dir: DataDir = None) -> None:
    """Check the queue's invariants now; exit 1 and say which one when one is violated."""
    from gateway.bootstrap.views import queue_audit

    found = asyncio.run(queue_audit(load_settings(data_dir=data_dir)))
    for shard, violations in found.items():
        typer.echo(f"{shard}: {'; '.join(violations) or 'ok'}")
    if any(found.values()):
        raise typer.Exit(_BROKEN)


@app.command()
def dead(
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20, data_dir: DataDir = None
) -> None:
    """Rows given up lately as JSON, newest first: why, and their last error."""
    for row in _do(data_dir, lambda admin: admin.dead(limit)):
        typer.echo(json.dumps(row))


@app.command()
def pause(
    batch_id: Batch = None,
    tenant: Tenant = None,
    everything: All = False,
    data_dir: DataDir = None,
) -> None:
    """Start nothing more of a batch, a tenant or all; running rows finish, deadlines go on.

    Of a tenant or all it holds for later work too.
    """
    chosen = _chosen(batch_id, tenant, everything)
    count = _do(data_dir, lambda admin: admin.pause(chosen, resume=False))
    _say_what(chosen, "paused", ", also what comes", count)


@app.command()
def resume(
    batch_id: Batch = None,
    tenant: Tenant = None,
    everything: All = False,
    data_dir: DataDir = None,
) -> None:
    """Undo a pause of the same batch or tenant, or of all."""
    chosen = _chosen(batch_id, tenant, everything)
    count = _do(data_dir, lambda admin: admin.pause(chosen, resume=True))
    _say_what(chosen, "resumed", "", count)


@app.command()
def reprioritise(
    batch_id: Batch = None,
    tenant: Tenant = None,
    priority: Annotated[
        int | None, typer.Option(min=-100_000, max=100_000, help="Minutes to move ahead.")
    ] = None,
    weight: Annotated[
        float | None, typer.Option(min=0.001, max=1_000_000, help="Of a tenant's queued work.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Move a batch ahead of its tenant's others (--priority), or weigh a tenant anew (--weight)."""
    if (priority is None) == (weight is None) or (weight is not None and tenant is None):
        raise typer.BadParameter("give --priority, or --tenant with --weight")
    if weight is not None and tenant is not None:
        _say("changed", _do(data_dir, lambda admin: admin.reweigh(tenant, weight)))
    elif priority is not None:
        chosen = _chosen(batch_id, tenant, False)
        _say("changed", _do(data_dir, lambda admin: admin.reprioritise(chosen, priority)))


@app.command("retry-failed")
def retry_failed(batch_id: Batch = None, data_dir: DataDir = None) -> None:
    """Rows that were given up and have no error line yet start over, of one batch or of all."""
    _say("rows wait again", _do(data_dir, lambda admin: admin.retry_dead(batch_id)))


@app.command()
def purge(batch_id: str, data_dir: DataDir = None) -> None:
    """Forget a batch or job that has ended; files of a batch stay until they expire."""
    _do(data_dir, lambda admin: admin.purge(batch_id))
    typer.echo(f"purged {batch_id}")


@app.command("confirm-clock")
def confirm_clock(data_dir: DataDir = None) -> None:
    """The queue server's clock leapt forward and is right: let deadlines pass again."""
    leaps = _do(data_dir, lambda admin: admin.confirm_clock())
    for shard, ms in leaps.items():
        typer.echo(f"{shard}: {ms / 1000:.0f} s confirmed")
    if not leaps:
        typer.echo("the clock had not leapt")


def _chosen(batch: str | None, tenant: str | None, everything: bool) -> "Selection":
    from gateway.bootstrap.queue_admin import Selection

    if [batch is not None, tenant is not None, everything].count(True) != 1:
        raise typer.BadParameter("give one of ID, --tenant and --all")
    return Selection(batch, tenant)


def _do(data_dir: Path | None, work: "Callable[[QueueAdmin], Awaitable[_T]]") -> _T:
    from gateway.bootstrap.queue_admin import open_admin

    async def run() -> _T:
        async with open_admin(load_settings(data_dir=data_dir)) as admin:
            return await work(admin)

    return asyncio.run(run())


def _say_what(chosen: "Selection", done: str, more: str, count: int) -> None:
    if chosen.batch is None:
        who = "everything" if chosen.tenant is None else f"tenant {chosen.tenant}"
        typer.echo(f"{who} is {done}{more}")
        return
    if count == 0:
        typer.echo(f"nothing of {chosen.batch} is left to be {done}", err=True)
        raise typer.Exit(_BROKEN)
    _say(done, count)


def _say(what: str, count: int) -> None:
    typer.echo(f"{count} {what}")
