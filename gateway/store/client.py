"""The connection to Redis or Valkey, speaking the product's errors."""

import asyncio
import builtins
from typing import Any, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,  # noqa: A004 - redis-py's own
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TimeoutError,  # noqa: A004 - redis-py's own
)

from gateway.core.errors import ConfigError, StoreFull, StoreUnavailable

_TIMEOUT_SECONDS = 5.0
_AT_ONCE = 64
_SPARE_CONNECTIONS = 36


class StoreClient(Redis):
    """A redis-py client whose commands raise StoreUnavailable and StoreFull.

    A command that meets a dead connection is sent once more over a new one: whatever is sent
    through here must be harmless when it runs twice. A cancelled command drops its connection.

    64 commands run at once, each on a connection; the next ones wait for their turn, in order.
    """

    wait_seconds = _TIMEOUT_SECONDS

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        most = self.connection_pool.max_connections  # the URL may say less
        self._places = asyncio.Semaphore(max(1, min(_AT_ONCE, most)))

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Run one command.

        redis-py takes a cancellation that comes while it connects for a connection made, and then
        fails on it; here it stays a cancellation.
        """
        if self._places.locked():
            await self._turn()
        else:
            await self._places.acquire()  # at once
        asked = _cancellations()
        try:
            return await self._execute(*args, **options)
        finally:
            self._places.release()
            if _cancellations() > asked:
                raise asyncio.CancelledError

    async def _turn(self) -> None:
        try:
            async with asyncio.timeout(self.wait_seconds):
                await self._places.acquire()
        except builtins.TimeoutError:
            raise StoreUnavailable("The queue has too much to do.") from None

    async def _execute(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]  # redis-py's own
        except OutOfMemoryError as error:
            raise StoreFull("The queue's memory is full.") from error
        except (AuthenticationError, BusyLoadingError, ReadOnlyError) as error:
            raise StoreUnavailable("The queue does not take work now.") from error
        except (ConnectionError, TimeoutError, OSError) as error:
            raise StoreUnavailable("The queue does not answer.") from error
        except ResponseError as error:
            if str(error).startswith(("MISCONF", "OOM")):
                raise StoreFull("The queue cannot write.") from error
            raise


def _cancellations() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def connect(url: str, *, timeout: float = _TIMEOUT_SECONDS) -> StoreClient:
    """A client for ``redis://``, ``rediss://`` or ``unix://`` URLs; connects when first used.

    Raises ConfigError when the URL has an option that cannot be read.
    """
    try:
        client = StoreClient.from_url(
            url,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            retry=Retry(ExponentialBackoff(cap=0.2, base=0.02), retries=1),
            max_connections=_AT_ONCE + _SPARE_CONNECTIONS,
        )
    except ValueError as error:
        raise ConfigError(f"HEADWAY_REDIS_URL: {error}") from None
    store = cast("StoreClient", client)
    store.wait_seconds = timeout
    return store
