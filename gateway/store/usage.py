"""Shipped totals: hours of tenants, each a hash of lane, model, key and status."""

import contextlib
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, unquote

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from gateway.core.errors import StoreUnavailable
from gateway.store.scripts import whole_script

_KEEP_SECONDS: Final = 400 * 86400
_TENANTS: Final = "gw:usage-tenants"
_EPOCH: Final = "gw:{sys}:usage-epoch"
FIGURES: Final = ("requests", "prompt", "completion", "cached", "reasoning", "estimated")

Deltas = Mapping[str, Mapping[str, int]]
"""Hour (``2026113005``, UTC) → field (see ``field_name``) → amount to add."""


@dataclass(frozen=True, slots=True)
class TotalsRow:
    """One sum. ``estimated`` counts the requests whose usage is an estimate."""

    tenant: str
    hour: str
    lane: str
    model: str
    key_id: str
    status: str
    requests: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0
    estimated: int = 0


def field_name(lane: str, model: str, key_id: str, status: str, figure: str) -> str:
    """The hash field of one figure."""
    return "|".join((lane, _quoted(model), _quoted(key_id), status, figure))


_quoted = lru_cache(1024)(quote)


class UsageTotals:
    """Reads and adds to the totals. Every method raises StoreUnavailable when Redis is away."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._ship = whole_script("usage_ship")
        self._known: set[str] = set()
        self._epoch = ""

    async def epoch(self) -> str:
        """Names the totals; another name says that the store lost the ones before."""
        with _store_errors():
            found = await self._redis.get(_EPOCH)
            if found is None:
                await self._redis.set(_EPOCH, secrets.token_hex(8), nx=True)
                found = await self._redis.get(_EPOCH)
        if found is None:
            raise StoreUnavailable("the store was emptied just now")
        epoch = _text(found)
        if epoch != self._epoch:
            self._known.clear()
            self._epoch = epoch
        return epoch

    async def ship(self, tenant: str, file: str, since: int, until: int, deltas: Deltas) -> int:
        """Count bytes ``since`` to ``until`` of a journal file; ``deltas`` are their sums.

        Returns the mark the store had. When it is not ``since`` nothing was added: those bytes
        up to the mark are counted already.
        """
        keys = [_marks(tenant), *(_hour_key(tenant, hour) for hour in deltas)]
        arguments: list[str | int] = [file, since, until, _KEEP_SECONDS]
        for fields in deltas.values():
            arguments.append(len(fields))
            for name, amount in fields.items():
                arguments += [name, amount]
        with _store_errors():
            if tenant not in self._known:
                await self._redis.sadd(_TENANTS, tenant)
                self._known.add(tenant)
            return int(await self._ship.run(self._redis, keys, *arguments))

    async def forget(self, tenant: str, file: str) -> None:
        """Drop the mark of a file that will never be shipped again."""
        with _store_errors():
            await self._redis.hdel(_marks(tenant), file)

    async def tenants(self) -> list[str]:
        """Tenants that ever had a record."""
        with _store_errors():
            return sorted(_text(name) for name in await self._redis.smembers(_TENANTS))

    async def rows(self, tenant: str, hours: Iterable[str]) -> list[TotalsRow]:
        """Sums of the given hours, one row per hour, lane, model, key and status."""
        wanted = list(hours)
        found: list[TotalsRow] = []
        with _store_errors():
            async with self._redis.pipeline(transaction=False) as pipe:
                for hour in wanted:
                    pipe.hgetall(_hour_key(tenant, hour))
                for hour, fields in zip(wanted, await pipe.execute(), strict=True):
                    found += _rows(tenant, hour, fields)
        return found


@contextlib.contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except ResponseError:
        raise
    except (RedisError, OSError) as error:
        raise StoreUnavailable("the store does not answer") from error


def _rows(tenant: str, hour: str, fields: Mapping[Any, Any]) -> Iterator[TotalsRow]:
    sums: dict[tuple[str, ...], dict[str, int]] = {}
    for name, amount in fields.items():
        *group, figure = _text(name).split("|")
        sums.setdefault(tuple(group), {})[figure] = int(amount)
    for (lane, model, key_id, status), figures in sorted(sums.items()):
        known = {name: figures.get(name, 0) for name in FIGURES}
        yield TotalsRow(tenant, hour, lane, unquote(model), unquote(key_id), status, **known)


def _marks(tenant: str) -> str:
    return f"gw:{{t:{quote(tenant)}}}:journals"


def _hour_key(tenant: str, hour: str) -> str:
    return f"gw:{{t:{quote(tenant)}}}:usage:{hour}"


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
