"""Which rows a provider's own Batch API has: one small record each, on disk before it is asked."""

from dataclasses import asdict, dataclass, replace

import orjson

from gateway.core.errors import NotFound
from gateway.store.blobs import BlobStore

_FOLDER = "carries/"


@dataclass(frozen=True, slots=True)
class Carry:
    """One batch at a provider. ``rows`` are texts ``segment:index:tries``.

    ``file`` and ``batch`` are the provider's ids, empty until they are known.
    """

    id: str
    target: str
    created_at: float
    rows: tuple[str, ...]
    file: str = ""
    batch: str = ""

    def at(self, *, file: str | None = None, batch: str | None = None) -> "Carry":
        """The same with what the provider called it."""
        return replace(self, file=file or self.file, batch=batch or self.batch)


class Carries:
    """The records of every dispatcher that shares the data directory."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    async def save(self, carry: Carry) -> None:
        """Write the record durably."""
        await self._blobs.put(_name(carry.id), orjson.dumps(asdict(carry)))

    async def ids(self) -> list[str]:
        """Every record there is."""
        names = await self._blobs.list(_FOLDER)
        return [name[len(_FOLDER) :].removesuffix(".json") for name in names]

    async def load(self, carry_id: str) -> Carry | None:
        """One record; None when it was removed meanwhile."""
        try:
            content = orjson.loads(await self._blobs.read(_name(carry_id)))
        except NotFound:
            return None
        return Carry(**{**content, "rows": tuple(content["rows"])})

    async def remove(self, carry_id: str) -> None:
        """Forget it."""
        await self._blobs.delete(_name(carry_id))


def _name(carry_id: str) -> str:
    return f"{_FOLDER}{carry_id}.json"
