"""Keys and digests."""

import hashlib

from typer.testing import CliRunner

from gateway.cli.keys import app


def test_a_key_is_hashed_from_stdin() -> None:
    """The digest of what was typed, without the line end."""
    shown = CliRunner().invoke(app, ["hash"], input="hw-a\n")
    assert shown.stdout.strip() == hashlib.sha256(b"hw-a").hexdigest()


def test_a_new_key_comes_with_its_digest() -> None:
    """Both lines belong together."""
    key, digest = (line.split()[1] for line in CliRunner().invoke(app, ["new"]).stdout.splitlines())
    assert hashlib.sha256(key.encode()).hexdigest() == digest
