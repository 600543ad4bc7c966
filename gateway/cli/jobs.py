"""``headway jobs``: one call of an inference endpoint that runs later."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.connection import ApiKey, BaseUrl, DataDir, connect
from gateway.cli.following import until_ended
from gateway.cli.tables import show

if TYPE_CHECKING:
    from gateway.providers.api_client import ApiClient

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
_NOT_COMPLETED = 2

app = typer.Typer(help="Have single calls run later.", no_args_is_help=True)


@app.command()
def submit(
    file: Annotated[str, typer.Argument(help="JSON body of the call; - for standard input.")],
    endpoint: Annotated[str, typer.Option(help="Path of the call.")] = "/v1/chat/completions",
    deadline: Annotated[str | None, typer.Option(help="Latest end, such as 2h.")] = None,
    not_before: Annotated[str | None, typer.Option(help="Earliest start, such as 20s.")] = None,
    priority: Annotated[int | None, typer.Option(min=0, max=9, help="9 goes first.")] = None,
    key: Annotated[str | None, typer.Option(help="Idempotency key.")] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the end and print the result.")
    ] = False,
    base_url: BaseUrl = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
) -> None:
    """Start a job; prints its id."""
    body = _body(file)
    with connect(base_url, api_key, data_dir) as client:
        job = client.create_job(
            endpoint, body, key, deadline=deadline, not_before=not_before, priority=priority
        )
        typer.echo(job["id"], err=wait)
        if wait:
            _conclude(client, _follow(client, job))


@app.command()
def status(
    job_id: str,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end.")] = False,
    base_url: BaseUrl = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
) -> None:
    """One job as JSON."""
    with connect(base_url, api_key, data_dir) as client:
        job = client.job(job_id)
        _print(_follow(client, job) if wait else job)


@app.command()
def result(
    job_id: str, base_url: BaseUrl = None, api_key: ApiKey = None, data_dir: DataDir = None
) -> None:
    """What the call was answered, as JSON."""
    with connect(base_url, api_key, data_dir) as client:
        _print(client.job_result(job_id))


@app.command("list")
def list_jobs(
    limit: Annotated[int, typer.Option(min=1, max=100)] = 20,
    base_url: BaseUrl = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
) -> None:
    """The newest jobs."""
    with connect(base_url, api_key, data_dir) as client:
        jobs = client.jobs(limit)
    names = ("id", "status", "endpoint", "model")
    show(("job", *names[1:]), ([str(job[name]) for name in names] for job in jobs))


@app.command()
def cancel(
    job_id: str, base_url: BaseUrl = None, api_key: ApiKey = None, data_dir: DataDir = None
) -> None:
    """Cancel a job."""
    with connect(base_url, api_key, data_dir) as client:
        typer.echo(client.cancel_job(job_id)["status"])


def _body(file: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        body = json.loads(text)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{file}: {error}") from None
    if not isinstance(body, dict):
        raise typer.BadParameter(f"{file} must hold a JSON object")
    return body


def _follow(client: "ApiClient", job: dict[str, Any]) -> dict[str, Any]:
    """The job once it has ended; asked for less and less often."""
    return until_ended(job, client.job, _pauses())


def _pauses() -> Iterator[float]:
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)


def _conclude(client: "ApiClient", job: dict[str, Any]) -> None:
    if job["status"] == "completed":
        _print(client.job_result(job["id"]))
        return
    error = job["error"] or {}
    typer.echo(f"{job['status']}: {error.get('message')} ({error.get('code')})", err=True)
    raise typer.Exit(_NOT_COMPLETED)


def _print(value: dict[str, Any]) -> None:
    from rich.console import Console

    Console().print_json(data=value)
