"""``headway policy``: check a policy file, or show what it means."""

import json
from pathlib import Path
from typing import Annotated

import typer

from gateway.core.settings import load_settings

PolicyFile = Annotated[
    Path | None, typer.Argument(help="Policy YAML; without: HEADWAY_POLICY or the default.")
]

app = typer.Typer(help="Check and show policies.", no_args_is_help=True)


@app.command()
def check(file: PolicyFile = None) -> None:
    """Validate; a fault is one line with file and line number, exit 78.

    What can be used and is probably not meant is a warning.
    """
    from gateway.policy.advice import advice
    from gateway.policy.loader import load_policy
    from gateway.policy.tree import spelled

    path = file or load_settings().policy
    policy = load_policy(path)
    for place, message in advice(policy):
        typer.echo(f"{path or 'default policy'}: warning: {spelled(place)}{message}", err=True)
    typer.echo(f"{path or 'default policy'}: ok, {len(policy.targets)} target(s)")


@app.command()
def show(file: PolicyFile = None) -> None:
    """Print the whole policy with its defaults as JSON, secrets masked."""
    from gateway.policy.loader import describe, load_policy

    typer.echo(json.dumps(describe(load_policy(file or load_settings().policy)), indent=2))
