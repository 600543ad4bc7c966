"""Blobs: what is too big for the queue or must outlive it.

Names are paths of server-made parts such as ``jobs/batch_4f…/manifest.json``; anything else is
refused. A blob is written whole or not at all, and never changed afterwards.
"""

import asyncio
import contextlib
import errno
import hashlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import BinaryIO, ParamSpec, Protocol, TypeVar

from gateway.core.clock import Clock
from gateway.core.errors import NotFound, StoreFull

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_TEMPORARY = "tmp"
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
P = ParamSpec("P")
T = TypeVar("T")


class BlobWriter(Protocol):
    """A blob being written; it has no name until ``finish``."""

    size: int

    async def write(self, data: bytes) -> None:
        """Append ``data``."""

    async def finish(self) -> str:
        """Make the blob durable and give it its name. Returns the SHA-256 as hex."""

    async def abort(self) -> None:
        """Leave nothing behind; harmless after ``finish``."""


class BlobStore(Protocol):
    """Where blobs lie. Reads of a missing blob raise NotFound, writes without room StoreFull."""

    async def put(self, name: str, data: bytes, *, sync: bool = True) -> None:
        """Write a small blob, or replace it as a whole; with ``sync`` it outlives a power loss."""

    async def create(self, name: str) -> BlobWriter:
        """Start a blob of any size."""

    async def copy(self, source: str, target: str) -> None:
        """A second name for the same bytes, without moving them where possible."""

    async def read(self, name: str) -> bytes:
        """A small blob, whole."""

    async def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of each (offset, length); NotFound when the blob is too short."""

    async def stream(self, name: str, chunk: int = 262_144) -> AsyncIterator[bytes]:
        """The bytes in pieces. The blob is open when this returns, so a delete changes nothing."""

    async def size(self, name: str) -> int | None:
        """Length in bytes; None when there is no such blob."""

    async def delete(self, name: str) -> bool:
        """Remove the blob, or all blobs below a name ending in ``/``. False: there was nothing."""

    async def list(self, prefix: str) -> list[str]:
        """The names right below ``prefix`` (a name ending in ``/``); folders end in ``/``."""


class LocalBlobs:
    """Blobs in a directory: temporary file, fsync, rename, fsync of the directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, name: str) -> Path:
        """Where the blob lies. Raises NotFound for a name the server never makes."""
        if not _NAME.fullmatch(name):
            raise NotFound("No such object.")
        return self.root / name

    async def put(self, name: str, data: bytes, *, sync: bool = True) -> None:
        """Write a small blob."""
        await _writing(self._put, self.path(name), data, sync)

    async def create(self, name: str) -> "LocalWriter":
        """Start a blob of any size."""
        path = self.path(name)
        return LocalWriter(await _writing(self._temporary), path)

    async def copy(self, source: str, target: str) -> None:
        """A hard link: the bytes stay until the last name is gone."""
        await _writing(self._copy, self.path(source), self.path(target))

    async def read(self, name: str) -> bytes:
        """A small blob, whole."""
        return await asyncio.to_thread(_read, self.path(name))

    async def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of each (offset, length)."""
        return await asyncio.to_thread(_read_ranges, self.path(name), ranges)

    async def stream(self, name: str, chunk: int = 262_144) -> AsyncIterator[bytes]:
        """The bytes in pieces of at most ``chunk``."""
        return _pieces(await asyncio.to_thread(_open, self.path(name)), chunk)

    async def size(self, name: str) -> int | None:
        """Length in bytes; None when there is no such blob."""
        return await asyncio.to_thread(_size, self.path(name))

    async def delete(self, name: str) -> bool:
        """Remove the blob, or the whole folder when the name ends in ``/``."""
        return await asyncio.to_thread(_delete, self.path(name.removesuffix("/")))

    async def list(self, prefix: str) -> list[str]:
        """The names right below ``prefix``, sorted."""
        return await asyncio.to_thread(_list, self.path(prefix.removesuffix("/")), prefix)

    async def sweep(self, clock: Clock, older_than_seconds: float = 3600.0) -> int:
        """Remove unfinished blobs nobody wrote to for that long; returns how many."""
        limit = clock.now() - older_than_seconds
        return await asyncio.to_thread(_sweep, self.root / _TEMPORARY, limit)

    def _temporary(self) -> Path:
        folder = self.root / _TEMPORARY
        folder.mkdir(parents=True, exist_ok=True)
        return folder / secrets.token_hex(12)

    def _put(self, path: Path, data: bytes, sync: bool) -> None:
        temporary = self._temporary()
        try:
            with temporary.open("xb") as file:
                file.write(data)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            _publish(temporary, path, sync=sync)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def _copy(self, source: Path, target: Path) -> None:
        temporary = self._temporary()
        try:
            os.link(source, temporary)
        except FileNotFoundError:
            raise NotFound("No such object.") from None
        _publish(temporary, target)
        # rename(2) does nothing when both names are links to one file already
        temporary.unlink(missing_ok=True)


class LocalWriter:
    """Writes and digests in a thread, one call at a time; awaiting is the back-pressure."""

    def __init__(self, temporary: Path, target: Path) -> None:
        self._temporary = temporary
        self._target = target
        self._file: BinaryIO | None = None
        self._digest = hashlib.sha256()
        self.size = 0

    async def write(self, data: bytes) -> None:
        """Append ``data``."""
        await _writing(self._write, data)

    async def finish(self) -> str:
        """fsync, rename, fsync of the directory."""
        await _writing(self._finish)
        return self._digest.hexdigest()

    async def abort(self) -> None:
        """Remove the temporary file."""
        await asyncio.to_thread(self._abort)

    def _open(self) -> BinaryIO:
        if self._file is None:
            self._file = self._temporary.open("xb")
        return self._file

    def _write(self, data: bytes) -> None:
        self._open().write(data)
        self._digest.update(data)
        self.size += len(data)

    def _finish(self) -> None:
        with self._open() as file:
            file.flush()
            os.fsync(file.fileno())
        _publish(self._temporary, self._target)

    def _abort(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # what it still holds is not wanted
                self._file.close()
        self._temporary.unlink(missing_ok=True)


async def _writing(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``work`` in a thread. Raises StoreFull when there is no room."""
    try:
        return await asyncio.to_thread(work, *args, **kwargs)
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise StoreFull("The gateway's disk is full.", retry_after=30) from error
        raise


def sync_folder(folder: Path) -> None:
    """Make names in ``folder`` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create ``folder`` and its parents durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def _publish(temporary: Path, target: Path, *, sync: bool = True) -> None:
    make_folder(target.parent)
    temporary.replace(target)
    if sync:
        sync_folder(target.parent)


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except (FileNotFoundError, IsADirectoryError):
        raise NotFound("No such object.") from None


def _read(path: Path) -> bytes:
    with _open(path) as file:
        return file.read()


def _read_ranges(path: Path, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    with _open(path) as file:
        pieces = [os.pread(file.fileno(), length, offset) for offset, length in ranges]
    if any(len(piece) != length for piece, (_, length) in zip(pieces, ranges, strict=True)):
        raise NotFound("The object is shorter than it should be.")
    return pieces


async def _pieces(file: BinaryIO, chunk: int) -> AsyncIterator[bytes]:
    with file:
        while piece := await asyncio.to_thread(file.read, chunk):
            yield piece


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _delete(path: Path) -> bool:
    if path.is_dir():
        for child in path.iterdir():
            _delete(child)
        path.rmdir()
        return True
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def _list(folder: Path, prefix: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name + ("/" if entry.is_dir() else "") for entry in entries]
    except FileNotFoundError:
        return []
    return sorted(prefix + name for name in names)


def _sweep(folder: Path, limit: float) -> int:
    removed = 0
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.stat().st_mtime < limit:
            path.unlink(missing_ok=True)
            removed += 1
    return removed
