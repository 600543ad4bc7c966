"""``headway batch retry-failed``: the failed lines of a batch as a new batch."""

import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.connection import ApiKey, BaseUrl, DataDir, connect
from gateway.core.errors import ClientError, HeadwayError
from gateway.core.lines import lines_of

if TYPE_CHECKING:
    from gateway.providers.api_client import ApiClient


def retry_failed(
    batch_id: str,
    window: Annotated[
        str | None, typer.Option(help="Completion window; default: that of the batch.")
    ] = None,
    base_url: BaseUrl = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
) -> None:
    """Start a new batch of the lines of BATCH_ID that are in its error file; prints its id."""
    with connect(base_url, api_key, data_dir) as client:
        batch = client.batch(batch_id)
        failed = _failed_ids(client, batch)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"retry-of-{batch_id}.jsonl"
            _select(_input_lines(client, batch), failed, path)
            uploaded = client.upload(path, lambda _: None)
        again = client.create_batch(
            uploaded["id"], batch["endpoint"], window or batch["completion_window"]
        )
    typer.echo(again["id"])
    typer.echo(f"{len(failed)} lines of {batch_id}", err=True)


def _failed_ids(client: "ApiClient", batch: dict[str, Any]) -> set[str]:
    file_id = batch.get("error_file_id")
    if not file_id:
        raise HeadwayError(f"batch {batch['id']} ({batch['status']}) has no error file")
    return {json.loads(line)["custom_id"] for line in lines_of(client.download(file_id))}


def _input_lines(client: "ApiClient", batch: dict[str, Any]) -> Iterator[bytes]:
    try:
        yield from lines_of(client.download(batch["input_file_id"]))
    except ClientError as error:
        raise HeadwayError(
            f"the input {batch['input_file_id']} of batch {batch['id']} is gone, "
            f"so its lines cannot be sent again: {error.message}"
        ) from error


def _select(lines: Iterable[bytes], wanted: set[str], path: Path) -> None:
    """Write the lines with these ids, unchanged."""
    missing = set(wanted)
    with path.open("wb") as out:
        for line in lines:
            custom_id = json.loads(line)["custom_id"]
            if custom_id in missing:
                missing.discard(custom_id)
                out.write(line + b"\n")
    if missing:
        raise HeadwayError(f"the input has no line {min(missing)!r} any more")
