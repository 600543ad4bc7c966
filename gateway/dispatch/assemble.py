"""From a lease to rows that can be sent: their lines are read from the input file."""

from gateway.batches.rows import RowSource
from gateway.core.work import Lease
from gateway.dispatch.held import HeldLease, HeldRow, Holdings


async def assemble(lease: Lease, source: RowSource, holdings: Holdings) -> list[HeldRow]:
    """The rows of ``lease``, held from now on, in the order of the segment.

    That order was made at intake, by shared prefix and length, so neighbours go well together.
    """
    held = holdings.take(lease)
    rows: list[HeldRow] = []
    for run in lease.runs:
        places = {row.index: row for row in run.rows}
        for line in await source.read(run):
            row = HeldRow(held, run, places[line.index], line)
            held.rows[run.segment, line.index] = row
            rows.append(row)
    return rows


def release_map(lease: HeldLease) -> dict[str, list[int]]:
    """The rows of ``lease`` without a result, by segment."""
    rows: dict[str, list[int]] = {}
    for (segment, index), row in lease.rows.items():
        if not row.ended:
            rows.setdefault(segment, []).append(index)
    return rows
