"""Which server binary is taken."""

from pathlib import Path

import pytest

from gateway.core.errors import ServerBinaryMissing
from gateway.store import binaries
from gateway.store.binaries import find_server


def _server(path: Path, version: str) -> Path:
    path.write_text(f"#!/bin/sh\necho 'Valkey server v={version} sha=0 malloc=libc bits=64'\n")
    path.chmod(0o755)
    return path


def test_the_packaged_server_is_found() -> None:
    """The extra ``embedded`` is enough: no server needs to be installed."""
    assert find_server().name == "valkey-server"


def test_a_configured_server_wins(tmp_path: Path) -> None:
    """Whoever names a binary gets that one."""
    mine = _server(tmp_path / "mine", "8.0.1")
    assert find_server(mine) == mine


def test_an_old_server_is_refused(tmp_path: Path) -> None:
    """Before 7.0 a full queue could not drain: such a server is never started."""
    with pytest.raises(ServerBinaryMissing, match=r"7\.0"):
        find_server(_server(tmp_path / "old", "6.2.14"))


def test_a_configured_server_that_is_none_is_refused(tmp_path: Path) -> None:
    """No silent fall-back to another binary than the one asked for."""
    with pytest.raises(ServerBinaryMissing):
        find_server(tmp_path / "absent")


def test_without_any_server_the_ways_out_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence with three ways out, and never an in-memory stand-in."""
    monkeypatch.setattr(binaries, "_packaged", list)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerBinaryMissing) as refused:
        find_server()
    for way in ("headway[embedded]", "PATH", "HEADWAY_REDIS_URL"):
        assert way in refused.value.message


def test_a_link_is_not_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian's redis-server is a link whose name decides its role."""
    monkeypatch.setattr(binaries, "_packaged", list)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    target = _server(tmp_path / "check-tool", "7.0.15")
    (tmp_path / "valkey-server").symlink_to(target)
    assert find_server() == tmp_path / "valkey-server"
