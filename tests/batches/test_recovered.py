"""What part files hold comes back into the queue."""

from gateway.batches.recovered import results_of
from gateway.core.usage import Usage
from tests.support.batch import chat_line
from tests.support.batch_plane import HOUR, BatchPlane


async def test_results_by_segment_and_hour(plane: BatchPlane) -> None:
    """Each segment has its own; a batch without parts has none."""
    models = ("m", "n", "m")
    batch_id = await plane.start(*(chat_line(str(n), "x", model=m) for n, m in enumerate(models)))
    assert await results_of(plane.root, batch_id) == {}
    await plane.run(2, lambda row: row.index == 0)
    await plane.run(1, model="n")
    found = await results_of(plane.root, batch_id)
    kept = {
        segment: [(hour, r.index, r.ok, r.usage) for hour, rows in hours.items() for r in rows]
        for segment, hours in found.items()
    }
    assert kept == {
        f"{batch_id}.0": [(HOUR, 0, True, Usage(10, 2)), (HOUR, 1, False, Usage())],
        f"{batch_id}.1": [(HOUR, 0, True, Usage(10, 2))],
    }
