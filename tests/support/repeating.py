"""A queue client whose replies get lost now and then, so that the connection sends again."""

from random import Random
from typing import Any

from gateway.store.client import StoreClient
from gateway.store.queue import QueueClient


class RepeatingQueue(QueueClient):
    """Every tenth command runs twice, as after a connection that died before the answer came.

    The caller sees the second answer.
    """

    def __init__(self, redis: StoreClient, seed: int) -> None:
        super().__init__(redis)
        self._chance = Random(seed)

    async def _run(self, name: str, shard: str, *args: str | int | bytes) -> Any:
        if self._chance.random() < 0.1:
            await super()._run(name, shard, *args)
        return await super()._run(name, shard, *args)
