"""Redis commands of batch records: their keys, and one method per command."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from gateway.store.client import StoreClient
from gateway.store.scripts import whole_script

_IDEMPOTENCY_SECONDS = 86_400
_INTAKE = "gw:{sys}:intake"
_ENDED = "gw:{sys}:ended"
_EPOCH = "gw:{sys}:epoch"
_BATCHES = "jobs"


@dataclass(frozen=True, slots=True)
class IdempotencyClaim:
    """Which batch an idempotency key stands for, and the digest of the request it came with."""

    batch_id: str
    digest: str


class JobCommands:
    """The keys.

    ``gw:{<batch>}:job`` hash: the flat form of the record.
    ``gw:{t:<tenant>}:jobs`` zset: batches, all of score 0, as ids are in order of creation. Jobs
    of one request have a ``listing`` of their own, and with it an epoch.
    ``gw:{t:<tenant>}:idem:<digest>`` text: batch and digest of the request.
    ``gw:{sys}:intake`` zset: batch -> its place in the order, or ms at which a claim of it ends.
    ``gw:{sys}:ended`` zset: batch that is to be announced -> ms from which that may be claimed.
    ``gw:{sys}:epoch`` text: names what is there; absent until a loss of everything is repaired.
    ``gw:{sys}:epoch:<new>`` text: the next epoch, of a repair that is going on.
    """

    def __init__(self, redis: StoreClient, listing: str = _BATCHES) -> None:
        self._redis = redis
        self._listing = listing
        self._epoch = _EPOCH if listing == _BATCHES else f"{_EPOCH}:{listing}"
        self._add = whole_script("job_add")
        self._set = whole_script("job_set")
        self._move = whole_script("job_move")
        self._claim = whole_script("job_claim")

    async def ping(self) -> None:
        """Raise StoreUnavailable when Redis does not answer."""
        await self._do("PING")

    async def held_key(self, tenant: str, key: str) -> IdempotencyClaim | None:
        """Who has an idempotency key."""
        taken = await self._do("GET", _idempotency_key(tenant, key_digest(key)))
        return None if taken is None else IdempotencyClaim(*_text(taken).split(" "))

    async def claim_key(self, tenant: str, key: str, claim: IdempotencyClaim) -> IdempotencyClaim:
        """Take an idempotency key, or see who has it."""
        value = f"{claim.batch_id} {claim.digest}"
        name = _idempotency_key(tenant, key_digest(key))
        await self._do("SET", name, value, "NX", "EX", _IDEMPOTENCY_SECONDS)
        return await self.held_key(tenant, key) or claim

    async def restore_key(
        self, tenant: str, digest: str, claim: IdempotencyClaim, created_at: int
    ) -> None:
        """Give the key with this digest back to whom it belonged, for the rest of its time."""
        value = f"{claim.batch_id} {claim.digest}"
        name, until = _idempotency_key(tenant, digest), created_at + _IDEMPOTENCY_SECONDS
        await self._do("SET", name, value, "NX", "EXAT", until)

    async def add(self, batch_id: str, tenant: str, fields: Mapping[str, str]) -> None:
        """List the batch and write its record unless it is there.

        In this order: a record is what tells that nothing is left to put back.
        """
        await self.show(batch_id, tenant)
        await self._add.run(self._redis, [_job_key(batch_id)], *_flat(fields))

    async def remove(self, batch_id: str, tenant: str) -> None:
        """Delete the record and its place in the list."""
        await self._do("ZREM", _INTAKE, batch_id)
        await self._do("ZREM", self._tenant_key(tenant), batch_id)
        await self._do("DEL", _job_key(batch_id))

    async def show(self, batch_id: str, tenant: str) -> None:
        """Have the listing of the tenant show it."""
        await self._do("ZADD", self._tenant_key(tenant), 0, batch_id)

    async def trim(self, tenant: str, most: int) -> None:
        """Let the listing show the newest ``most`` alone."""
        await self._do("ZREMRANGEBYRANK", self._tenant_key(tenant), 0, -most - 1)

    async def expire(self, batch_id: str, seconds: int) -> None:
        """Forget the record after a while."""
        await self._do("EXPIRE", _job_key(batch_id), seconds)

    async def exists(self, batch_id: str) -> bool:
        """Whether there is a record."""
        return bool(await self._do("EXISTS", _job_key(batch_id)))

    async def fields(self, batch_id: str) -> dict[str, str]:
        """The flat form; empty when there is no record."""
        found = await self._do("HGETALL", _job_key(batch_id))
        return {_text(name): _text(value) for name, value in found.items()}

    async def set_fields(self, batch_id: str, fields: Mapping[str, str]) -> None:
        """Write fields as they are; nothing when there is no record."""
        await self._set.run(self._redis, [_job_key(batch_id)], *_flat(fields))

    async def page(self, tenant: str, limit: int, after: str | None) -> list[str]:
        """Ids, newest first."""
        start = f"({after}" if after else "+"
        key = self._tenant_key(tenant)
        found = await self._do("ZREVRANGEBYLEX", key, start, "-", "LIMIT", 0, limit)
        return [_text(batch_id) for batch_id in found]

    async def move(
        self, batch_id: str, allowed: Sequence[str], to: str, fields: Mapping[str, str]
    ) -> str:
        """Enter ``to`` from one of ``allowed``; the state before, empty when there is no record."""
        states = f",{','.join(allowed)},"
        key = _job_key(batch_id)
        return _text(await self._move.run(self._redis, [key], states, str(to), *_flat(fields)))

    async def ask_intake(self, batch_id: str, order: int) -> None:
        """Make the batch claimable now, in that order, unless it is or is claimed.

        An order that is no time in ms: the clock that told it may be ahead of the server's.
        """
        await self._do("ZADD", _INTAKE, "NX", order, batch_id)

    async def claim_intake(self, ttl_ms: int, held: str = "") -> str | None:
        """Claim the batch that waited longest, or hold on to ``held``."""
        claimed = await self._claim.run(self._redis, [_INTAKE], str(ttl_ms), held)
        return None if claimed is None else _text(claimed)

    async def end_intake(self, batch_id: str) -> None:
        """Not claimable any more."""
        await self._do("ZREM", _INTAKE, batch_id)

    async def ask_announcement(self, batch_id: str) -> None:
        """Have the end of the batch announced."""
        await self._do("ZADD", _ENDED, "NX", 0, batch_id)

    async def claim_announcement(self, ttl_ms: int) -> str | None:
        """Claim a batch that ended and was not announced."""
        claimed = await self._claim.run(self._redis, [_ENDED], str(ttl_ms), "")
        return None if claimed is None else _text(claimed)

    async def end_announcement(self, batch_id: str) -> None:
        """It is announced."""
        await self._do("ZREM", _ENDED, batch_id)

    async def epoch(self) -> str | None:
        """The epoch; None when everything was lost and is not put back yet."""
        found = await self._do("GET", self._epoch)
        return None if found is None else _text(found)

    async def begin_epoch(self) -> str:
        """Announce a new epoch, before what was lost is put back; returns its name."""
        epoch = secrets.token_hex(8)
        await self._do("SET", f"{self._epoch}:{epoch}", epoch)
        return epoch

    async def end_epoch(self, epoch: str) -> bool:
        """All is put back. False: Redis lost everything once more since the beginning."""
        try:
            await self._do("RENAME", f"{self._epoch}:{epoch}", self._epoch)
        except ResponseError:
            return False
        return True

    async def server(self) -> str:
        """Names the server process: another one may have lost the last second."""
        info = await self._do("INFO", "server")
        return str(info.get("run_id", ""))

    def _tenant_key(self, tenant: str) -> str:
        return f"gw:{{t:{tenant}}}:{self._listing}"

    async def _do(self, *command: str | int) -> Any:
        return await self._redis.execute_command(*command)


def _job_key(batch_id: str) -> str:
    return f"gw:{{{batch_id}}}:job"


def key_digest(key: str) -> str:
    """What is kept of an idempotency key."""
    return hashlib.sha256(key.encode()).hexdigest()


def _idempotency_key(tenant: str, digest: str) -> str:
    return f"gw:{{t:{tenant}}}:idem:{digest}"


def _flat(fields: Mapping[str, str]) -> list[str]:
    return [text for pair in fields.items() for text in pair]


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
