"""Setting again what an operator had set by hand, where Redis lost it.

Doing it twice is harmless.
"""

from gateway.store.batch_record import BatchRecord
from gateway.store.control import Scope
from gateway.store.controls import Controls
from gateway.store.keys import shard_of
from gateway.store.queue import QueueClient


async def set_pauses_again(controls: Controls, queue: QueueClient) -> None:
    """Pauses of tenants and of everything; before work that was lost is put back."""
    there = await queue.shards()
    for pause in await controls.pauses():
        for shard in {*pause.shards, *there}:
            if pause.paused:
                await queue.pause_ahead(shard, pause.scope)
            else:
                await queue.resume(shard, pause.scope)


async def set_batch_again(controls: Controls, queue: QueueClient, record: BatchRecord) -> None:
    """Pause and priority of one batch; before its segments are started."""
    control = await controls.of_batch(record.id)
    for segment in record.segments:
        shard, scope = shard_of(segment.model), Scope("segment", segment.segment)
        if control.priority is not None:
            await queue.reprioritise(shard, scope, control.priority)
        if control.paused is not None:
            await (queue.pause if control.paused else queue.resume)(shard, scope)
