"""The ``headway`` command. Each command imports what it runs only when it runs."""

import sys

import typer

from gateway import __version__
from gateway.cli import batch, jobs, keys, plan, policy, queue, serve, settings, targets, usage
from gateway.core.errors import ConfigError, HeadwayError, StartError

_FAILED = 1

app = typer.Typer(
    name="headway",
    help="Workload-aware LLM gateway: interactive calls first, batches in what is left.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(serve.serve)
app.command("serve-one", hidden=True)(serve.serve_one)
app.command()(serve.dispatch)
app.command()(serve.worker)
app.add_typer(batch.app, name="batch")
app.add_typer(jobs.app, name="jobs")
app.command()(usage.usage)
app.add_typer(queue.app, name="queue")
app.command()(targets.targets)
app.add_typer(policy.app, name="policy")
app.add_typer(keys.app, name="keys")
app.command()(plan.plan)
app.command("settings")(settings.show)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"headway {__version__}")


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def bench(context: typer.Context) -> None:
    """Load generators and reports; `headway bench --help` lists them."""
    from gateway.bench.cli import app as bench_app

    bench_app(args=context.args, prog_name="headway bench")


def main() -> None:
    """Run the command line; a known error is one sentence on stderr and its exit code."""
    try:
        app()
    except (ConfigError, StartError) as error:
        sys.exit(_report(error, error.exit_code))
    except HeadwayError as error:
        sys.exit(_report(error, _FAILED))


def _report(error: HeadwayError, code: int) -> int:
    typer.echo(f"headway: {error}", err=True)
    return code
