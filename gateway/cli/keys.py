"""``headway keys``: client keys for the policy."""

import hashlib
import secrets
import sys

import typer

from gateway.core.errors import ConfigError

app = typer.Typer(help="Make keys and their digests for the policy.", no_args_is_help=True)


@app.command("hash")
def hash_key() -> None:
    """Read a key (prompt or stdin, never an argument) and print the sha256 for the policy."""
    asked = sys.stdin.isatty()
    key = typer.prompt("key", hide_input=True) if asked else sys.stdin.readline()
    if not key.strip():
        raise ConfigError("the key is empty")
    typer.echo(hashlib.sha256(key.strip().encode()).hexdigest())


@app.command()
def new() -> None:
    """Make a key; prints it once, with the digest to put into the policy."""
    key = f"hw-{secrets.token_urlsafe(32)}"
    typer.echo(f"key:    {key}\nsha256: {hashlib.sha256(key.encode()).hexdigest()}")
