"""From a lease to rows that can be sent: their lines are read from the input file."""

import logging
from dataclasses import dataclass

from gateway.batches.rows import RowSource
from gateway.core.work import Lease
from gateway.dispatch.held import HeldLease, HeldRow, Holdings, ends_at

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Assembled:
    """``rows`` to run, and by segment the ``unread`` ones, whose files cannot be read now."""

    rows: list[HeldRow]
    unread: dict[str, list[int]]


async def assemble(lease: Lease, source: RowSource, holdings: Holdings, asked: float) -> Assembled:
    """The rows of ``lease``, asked for then, held from now on, in the order of the segment.

    That order was made at intake, by shared prefix and length, so neighbours go well together.
    A segment that cannot be read is no fault of the others.
    """
    held = holdings.take(lease, asked)
    rows: list[HeldRow] = []
    unread: dict[str, list[int]] = {}
    for run in lease.runs:
        places = {row.index: row for row in run.rows}
        ends = ends_at(run, lease.now_ms, asked)
        try:
            lines = await source.read(run)
        except Exception:
            log.exception("%s cannot be read now: its rows wait", run.segment)
            unread[run.segment] = list(places)
            continue
        for line in lines:
            row = HeldRow(held, run, places[line.index], line, ends)
            held.rows[run.segment, line.index] = row
            rows.append(row)
    if not rows:
        holdings.forget(lease.id)
    return Assembled(rows, unread)


def release_map(lease: HeldLease) -> dict[str, list[int]]:
    """The rows of ``lease`` without a result, by segment."""
    rows: dict[str, list[int]] = {}
    for (segment, index), row in lease.rows.items():
        if not row.ended:
            rows.setdefault(segment, []).append(index)
    return rows
