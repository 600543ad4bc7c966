"""``headway serve``, ``dispatch`` and ``worker``: the processes of the product."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.core.settings import load_settings

PolicyFile = Annotated[Path | None, typer.Option("--policy", help="Policy YAML.")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Files, batches, queue.")]
LogLevel = Annotated[str | None, typer.Option("--log-level", help="debug, info, warning, error.")]
Host = Annotated[str | None, typer.Option("--host", help="Listening address.")]
Workers = Annotated[
    int | None, typer.Option("--workers", help="Gateway processes that share the port.")
]
Local = Annotated[
    list[str] | None,
    typer.Option("--local", metavar="NAME=URL", help="Address of a running local worker."),
]
Port = Annotated[int | None, typer.Option("--port", help="Listening port; 0 picks one.")]


def serve(
    policy: PolicyFile = None,
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    workers: Workers = None,
    log_level: LogLevel = None,
) -> None:
    """Start the gateway with all it needs: queue server, dispatcher, local workers."""
    from gateway.bootstrap.serve import run_serve

    run_serve(
        load_settings(
            policy=policy,
            host=host,
            port=port,
            data_dir=data_dir,
            workers=workers,
            log_level=log_level,
        )
    )


def serve_one(
    fd: Annotated[int, typer.Option("--fd")],
    index: Annotated[int, typer.Option("--index")],
    of: Annotated[int, typer.Option("--of")],
    folder: Annotated[Path, typer.Option("--folder")],
    policy: PolicyFile = None,
    data_dir: DataDir = None,
    local: Local = None,
    log_level: LogLevel = None,
) -> None:
    """One gateway process of several, started by `serve`."""
    from gateway.bootstrap.serve_one import run_serve_one
    from gateway.bootstrap.share import Share

    settings = load_settings(policy=policy, data_dir=data_dir, log_level=log_level)
    run_serve_one(settings, local or [], fd, Share(index, of, folder))


def dispatch(
    policy: PolicyFile = None,
    data_dir: DataDir = None,
    local: Local = None,
    log_level: LogLevel = None,
) -> None:
    """Run batch rows: lease, call the targets, commit. As many processes as you like."""
    from gateway.bootstrap.dispatch import run_dispatch

    run_dispatch(load_settings(policy=policy, data_dir=data_dir, log_level=log_level), local or [])


def worker(
    target: Annotated[
        str | None, typer.Option("--target", help="The policy's local target to serve.")
    ] = None,
    policy: PolicyFile = None,
    host: Host = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Listening port.")] = 8001,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    model: Annotated[
        Path | None, typer.Option(help="GGUF file, or shape:NAME for random weights.")
    ] = None,
    log_level: LogLevel = None,
) -> None:
    """Serve the bundled model over an OpenAI-compatible API, without queue or gateway."""
    from gateway.bootstrap.local import check_worker_installed

    check_worker_installed()
    from gateway.bootstrap.worker import run_local_worker

    settings = load_settings(
        policy=policy, host=host, device=device, model_path=model, log_level=log_level
    )
    run_local_worker(settings, target, port)
