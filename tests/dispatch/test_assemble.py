"""Rows of a lease come with their lines."""

from pathlib import Path

from gateway.core.usage import Usage
from gateway.dispatch.assemble import assemble, release_map
from gateway.store.client import StoreClient
from tests.support.rig import SEGMENT, SHARD, Rig


async def _never(number: int) -> Usage:
    raise AssertionError(number)


async def test_lines_are_read_in_the_order_of_the_segment(
    tmp_path: Path, store: StoreClient
) -> None:
    """Each row has its custom id; what has no result yet can be released."""
    rig = Rig(tmp_path, store, _never)
    await rig.add(5)
    lease = await rig.queue.lease(SHARD, "w", 3, 10**6, 1000)
    assert lease is not None
    rows = (await assemble(lease, rig.source, rig.holdings, rig.holdings.now())).rows
    assert [row.source.custom_id for row in rows] == ["c0", "c1", "c2"]
    rows[0].ended = True
    assert release_map(rows[0].lease) == {SEGMENT: [1, 2]}
