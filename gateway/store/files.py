"""Files of tenants: a data blob and a small record beside it, under server-made ids only.

``files/<tenant>/<id>.data`` and ``<id>.json``. The folder of a tenant is named by a digest, so a
foreign id is simply not there. The record is written last: what can be seen is complete.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from gateway.core.clock import Clock
from gateway.core.errors import NotFound
from gateway.core.ids import new_ordered_id
from gateway.schemas.file import file_object
from gateway.schemas.lists import PageRequest
from gateway.store.blobs import BlobStore, BlobWriter
from gateway.store.room import PLENTY, RECORD_BYTES, Room

_ID = re.compile(r"file-[0-9a-f]{24}")
_READ_AT_ONCE = 32
_REMEMBERED = 50_000


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file.

    Times are Unix seconds; ``filename`` is what the client called it, for show; ``sha256`` is
    known for uploads.
    """

    id: str
    tenant: str
    bytes: int
    created_at: int
    filename: str
    purpose: str
    expires_at: int | None
    sha256: str | None

    def to_openai(self) -> dict[str, Any]:
        """The File object."""
        return file_object(
            self.id,
            size=self.bytes,
            created_at=self.created_at,
            filename=self.filename,
            purpose=self.purpose,
            expires_at=self.expires_at,
        )


class Upload:
    """A file being received. Nobody sees it before ``finish``."""

    def __init__(self, store: "FileStore", tenant: str, file_id: str, writer: BlobWriter) -> None:
        self._store = store
        self._tenant = tenant
        self._id = file_id
        self._writer = writer

    @property
    def size(self) -> int:
        """Bytes received."""
        return self._writer.size

    async def write(self, data: bytes) -> None:
        """Append ``data``; returns when it is written. Raises StoreFull."""
        await self._store.room.take(len(data))
        await self._writer.write(data)

    async def finish(self, filename: str, purpose: str, keep_seconds: int | None) -> FileRecord:
        """Make the file visible; ``keep_seconds`` None keeps it until it is deleted."""
        digest = await self._writer.finish()
        now = self._store.now()
        record = FileRecord(
            id=self._id,
            tenant=self._tenant,
            bytes=self.size,
            created_at=now,
            filename=filename,
            purpose=purpose,
            expires_at=None if keep_seconds is None else now + keep_seconds,
            sha256=digest,
        )
        await self._store.record(record)
        return record

    async def abort(self) -> None:
        """Leave nothing behind."""
        await self._writer.abort()


class FileStore:
    """All files. Every call names the tenant; another tenant's file raises NotFound."""

    def __init__(self, blobs: BlobStore, clock: Clock, room: Room = PLENTY) -> None:
        self._blobs = blobs
        self._clock = clock
        self.room = room
        self._known: dict[str, FileRecord] = {}

    def now(self) -> int:
        """Unix seconds."""
        return int(self._clock.now())

    async def start(self, tenant: str) -> Upload:
        """Begin to receive a file. Raises StoreFull when no new work is taken."""
        await self.room.take(RECORD_BYTES)
        file_id = new_ordered_id("file", int(self._clock.now() * 1000))
        writer = await self._blobs.create(data_name(tenant, file_id))
        return Upload(self, tenant, file_id, writer)

    async def adopt(self, record: FileRecord, blob: str) -> None:
        """Make ``blob`` a file; doing it again with the same record changes nothing."""
        await self._blobs.copy(blob, data_name(record.tenant, record.id))
        await self.record(record)

    async def record(self, record: FileRecord) -> None:
        """Write the record, which makes the file visible."""
        await self._blobs.put(_record_name(record.tenant, record.id), orjson.dumps(asdict(record)))

    async def get(self, tenant: str, file_id: str) -> FileRecord:
        """The record. Raises NotFound for unknown, foreign, deleted and expired files."""
        record = await self._load(tenant, file_id) if _ID.fullmatch(file_id) else None
        if record is None or self._expired(record):
            raise NotFound(f"No such File object: {file_id[:64]}", param="id")
        return record

    async def content(self, tenant: str, file_id: str) -> AsyncIterator[bytes]:
        """The bytes, from an open file: a delete meanwhile changes nothing."""
        await self.get(tenant, file_id)
        return await self._blobs.stream(data_name(tenant, file_id))

    async def page(
        self, tenant: str, wanted: PageRequest, purpose: str | None = None
    ) -> tuple[list[FileRecord], bool]:
        """A page in order of creation, and whether more follow."""
        ids: list[str] = sorted(await self._ids(tenant), reverse=wanted.descending)
        if wanted.after is not None:
            after = wanted.after
            ids = [i for i in ids if (i < after if wanted.descending else i > after)]
        found: list[FileRecord] = []
        for at in range(0, len(ids), _READ_AT_ONCE):
            some = ids[at : at + _READ_AT_ONCE]
            records = await asyncio.gather(*(self._read(tenant, file_id) for file_id in some))
            found += [
                r for r in records if r and not self._expired(r) and purpose in {None, r.purpose}
            ]
            if len(found) > wanted.limit:
                break
        return found[: wanted.limit], len(found) > wanted.limit

    async def delete(self, tenant: str, file_id: str) -> None:
        """Remove the file; the record first, so that a half-deleted file is not seen."""
        await self.get(tenant, file_id)
        await self._remove(tenant, file_id)

    async def sweep(self) -> int:
        """Remove expired files of all tenants; returns how many."""
        removed = 0
        for folder in await self._blobs.list("files/"):
            for name in await self._blobs.list(folder):
                if not name.endswith(".json"):
                    continue
                record = FileRecord(**orjson.loads(await self._blobs.read(name)))
                if self._expired(record):
                    await self._remove(record.tenant, record.id)
                    removed += 1
        return removed

    async def _remove(self, tenant: str, file_id: str) -> None:
        self._known.pop(data_name(tenant, file_id), None)
        await self._blobs.delete(_record_name(tenant, file_id))
        await self._blobs.delete(data_name(tenant, file_id))

    async def _ids(self, tenant: str) -> list[str]:
        folder = f"files/{_folder(tenant)}/"
        names = await self._blobs.list(folder)
        return [n[len(folder) : -len(".json")] for n in names if n.endswith(".json")]

    async def _load(self, tenant: str, file_id: str) -> FileRecord | None:
        if await self._blobs.size(_record_name(tenant, file_id)) is None:
            self._known.pop(data_name(tenant, file_id), None)
            return None
        return await self._read(tenant, file_id)

    async def _read(self, tenant: str, file_id: str) -> FileRecord | None:
        """Records never change, so one read is remembered."""
        name = data_name(tenant, file_id)
        if name not in self._known:
            try:
                content = await self._blobs.read(_record_name(tenant, file_id))
            except NotFound:
                return None
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[name] = FileRecord(**orjson.loads(content))
        return self._known[name]

    def _expired(self, record: FileRecord) -> bool:
        return record.expires_at is not None and record.expires_at <= self._clock.now()


def data_name(tenant: str, file_id: str) -> str:
    """Blob name of the bytes of a file."""
    return f"files/{_folder(tenant)}/{file_id}.data"


def _record_name(tenant: str, file_id: str) -> str:
    return f"files/{_folder(tenant)}/{file_id}.json"


def _folder(tenant: str) -> str:
    return "t" + hashlib.sha256(tenant.encode()).hexdigest()[:32]
