"""``headway batch``: a client of a running gateway."""

import json
import time
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.connection import ApiKey, BaseUrl, DataDir, connect
from gateway.cli.following import AWAY_SECONDS, until_ended
from gateway.cli.retry import retry_failed
from gateway.cli.tables import show
from gateway.core.errors import Unavailable
from gateway.core.writable import check_writable, whole_file

if TYPE_CHECKING:
    from gateway.providers.api_client import ApiClient

_POLL_SECONDS = 0.5
_NOT_COMPLETED = 2
_OUTPUT, _ERRORS = "output_file_id", "error_file_id"

app = typer.Typer(help="Submit, follow and fetch batches.", no_args_is_help=True)
app.command("retry-failed")(retry_failed)


@app.command()
def submit(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSONL input.")],
    endpoint: Annotated[str, typer.Option(help="Path of every line.")] = "/v1/chat/completions",
    window: Annotated[str, typer.Option(help="Completion window, such as 24h.")] = "24h",
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end.")] = False,
    output: Annotated[
        Path | None, typer.Option(help="Write the output here (with --wait).")
    ] = None,
    base_url: BaseUrl = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
) -> None:
    """Upload FILE and start a batch; prints its id."""
    if output is not None:
        check_writable(output)
        if output.exists() and output.samefile(file):
            raise typer.BadParameter("--output is the input itself")
    with connect(base_url, api_key, data_dir) as client:
        uploaded = _upload(client, file)
        batch = client.create_batch(uploaded["id"], endpoint, window)
        typer.echo(batch["id"])
        if not (wait or output):
            return
        batch = _follow(client, batch)
        if output and batch.get(_OUTPUT):
            _save(client, batch, output)
        _conclude(batch)


@app.command("list")
def list_batches(
    limit: Annotated[int, typer.Option(min=1, max=100)] = 20,
    base_url: BaseUrl = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
) -> None:
    """The newest batches."""
    with connect(base_url, api_key, data_dir) as client:
        batches = client.batches(limit)
    counts = ("completed", "failed", "total")
    rows = (
        [batch["id"], batch["status"], *(str(batch["request_counts"][name]) for name in counts)]
        for batch in batches
    )
    show(("batch", "status", "done", "failed", "total"), rows)


@app.command()
def status(
    batch_id: str,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end.")] = False,
    base_url: BaseUrl = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
) -> None:
    """One batch as JSON."""
    from rich.console import Console

    with connect(base_url, api_key, data_dir) as client:
        batch = client.batch(batch_id)
        if wait:
            batch = _follow(client, batch)
    Console().print_json(data=batch)
    if (batch.get("headway") or {}).get("warning"):
        typer.echo(f"warning: {batch['headway']['warning']}", err=True)


@app.command()
def cancel(
    batch_id: str, base_url: BaseUrl = None, api_key: ApiKey = None, data_dir: DataDir = None
) -> None:
    """Cancel a batch; finished lines stay."""
    with connect(base_url, api_key, data_dir) as client:
        typer.echo(client.cancel(batch_id)["status"])


@app.command()
def download(
    batch_id: str,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write.")],
    errors: Annotated[bool, typer.Option("--errors", help="The error file instead.")] = False,
    base_url: BaseUrl = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
) -> None:
    """Fetch the output (or error) file of a finished batch."""
    check_writable(output)
    with connect(base_url, api_key, data_dir) as client:
        batch = client.batch(batch_id)
        if not batch.get(_ERRORS if errors else _OUTPUT):
            raise typer.BadParameter(f"batch {batch_id} ({batch['status']}) has no such file")
        _save(client, batch, output, _ERRORS if errors else _OUTPUT)


@app.command()
def results(
    batch_id: str,
    after: Annotated[str, typer.Option(help="headway_cursor of the last line you have.")] = "",
    follow: Annotated[bool, typer.Option(help="Stay until the batch has ended.")] = True,
    base_url: BaseUrl = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
) -> None:
    """Finished lines, as they come; goes on by itself when the gateway was away."""
    with connect(base_url, api_key, data_dir) as client:
        answered = time.monotonic()
        while True:
            try:
                for line in client.results(batch_id, after, follow=follow):
                    typer.echo(line)
                    after = json.loads(line)["headway_cursor"]
                    answered = time.monotonic()
                return
            except Unavailable:
                if not follow or time.monotonic() - answered > AWAY_SECONDS:
                    raise
            time.sleep(_POLL_SECONDS)


def _upload(client: "ApiClient", file: Path) -> dict[str, Any]:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("upload"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=_console(), transient=True) as progress:
        bar = progress.add_task("upload", total=file.stat().st_size)
        return client.upload(file, lambda sent: progress.update(bar, completed=sent))


def _follow(client: "ApiClient", batch: dict[str, Any]) -> dict[str, Any]:
    """The batch once it has ended; its progress is shown until then."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=_console(), transient=True) as progress:
        bar = progress.add_task(batch["status"], total=None)

        def show_progress(now: dict[str, Any]) -> None:
            counts = now["request_counts"]
            done, total = counts["completed"] + counts["failed"], counts["total"] or None
            progress.update(bar, description=now["status"], completed=done, total=total)

        return until_ended(batch, client.batch, repeat(_POLL_SECONDS), show_progress)


def _save(client: "ApiClient", batch: dict[str, Any], output: Path, which: str = _OUTPUT) -> None:
    """Raises ConfigError when there is no room for it; the batch stays as it is."""
    errors = " --errors" if which == _ERRORS else ""
    then = f"; the results stay: headway batch download {batch['id']}{errors} -o FILE"
    with whole_file(output, then) as sink:
        for piece in client.download(batch[which]):
            sink.write(piece)


def _conclude(batch: dict[str, Any]) -> None:
    counts = batch["request_counts"]
    typer.echo(
        f"{batch['status']}: {counts['completed']} completed, {counts['failed']} failed, "
        f"{counts['total']} in total",
        err=True,
    )
    for fault in (batch.get("errors") or {}).get("data", []):
        place = "" if fault.get("line") is None else f"line {fault['line']}: "
        typer.echo(f"{place}{fault.get('message')}", err=True)
    if batch.get("error_file_id"):
        typer.echo(
            f"the lines that failed: headway batch download {batch['id']} --errors -o FILE\n"
            f"to run them again: headway batch retry-failed {batch['id']}",
            err=True,
        )
    if batch["status"] != "completed":
        raise typer.Exit(_NOT_COMPLETED)


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True)
