"""What a round does: its batches and its faults, all of it from the seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import Random

TENANTS = ("alpha", "beta", "gamma")
MODELS = ("m", "n")
LEASE_SECONDS = 1.0


class Fault(StrEnum):
    """What is done to the parts. The last three need a proxy before the queue server."""

    DISPATCHER = "dispatcher killed"
    WORKER = "worker killed"
    SERVER = "server killed"
    GATEWAY = "gateway killed"
    FREEZE = "process frozen"
    LOST_REPLY = "reply lost"
    SLOW = "server slow"
    CUT = "connections cut"


PROXIED = frozenset({Fault.LOST_REPLY, Fault.SLOW, Fault.CUT})
#: How often each fault happens in a round, as long as there is work.
_OFTEN = {Fault.DISPATCHER: 5, Fault.WORKER: 4, Fault.SERVER: 4, Fault.GATEWAY: 1, Fault.FREEZE: 1}
_OFTEN_PROXIED = {Fault.GATEWAY: 2, Fault.LOST_REPLY: 4, Fault.SLOW: 1, Fault.CUT: 1}
_LAST = 0.9


@dataclass(frozen=True)
class Strike:
    """One fault, when a share ``at`` of the rows is done, ``pause`` seconds after its victim works.

    ``size`` scales it, 0 to 1; ``victim`` chooses among several.
    """

    fault: Fault
    at: float
    pause: float
    size: float
    victim: float


@dataclass(frozen=True)
class BatchPlan:
    """One batch: who sends it, how long after the start, its rows, and whether it is cancelled."""

    name: str
    tenant: str
    after: float
    rows: tuple[tuple[str, str, int], ...]
    cancelled: bool = False

    def row_ids(self) -> list[str]:
        """Custom ids."""
        return [custom_id for custom_id, _, _ in self.rows]


@dataclass(frozen=True)
class RoundPlan:
    """A round. ``proxied`` puts a proxy between the product and its queue server."""

    number: int
    proxied: bool
    batches: tuple[BatchPlan, ...]
    strikes: tuple[Strike, ...]
    pace: float = 0.03
    env: dict[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows over all batches."""
        return sum(len(batch.rows) for batch in self.batches)


def round_plan(seed: int, number: int, rows: int) -> RoundPlan:
    """Round ``number`` of a run: everything at once, on about ``rows`` rows."""
    chance = Random(f"{seed}-{number}")
    proxied = number % 2 == 1
    often = {**_OFTEN, **(_OFTEN_PROXIED if proxied else {})}
    faults = [fault for fault, times in often.items() for _ in range(times)]
    share = rows // 5
    sizes = [share, share, share, share, rows - 4 * share]
    batches = [
        _batch(chance, f"r{number}b{place}", size, after=0.0 if place < 2 else chance.uniform(0, 6))
        for place, size in enumerate(sizes)
    ]
    if number % 3 == 0:
        name = f"r{number}cancelled"
        batches.append(_batch(chance, name, share // 2, after=chance.uniform(0, 3), cancelled=True))
    return RoundPlan(number, proxied, tuple(batches), _strikes(chance, faults))


def short_plan(faults: Mapping[Fault, int], rows: int) -> RoundPlan:
    """A short round with so many of a few faults, on slow rows."""
    chance = Random("-".join(faults))
    batches = tuple(_batch(chance, f"s{place}", rows // 2, after=0.3 * place) for place in range(2))
    wanted = [fault for fault, times in faults.items() for _ in range(times)]
    strikes = tuple(replace(strike, at=strike.at / 2) for strike in _strikes(chance, wanted))
    return RoundPlan(0, bool(PROXIED & faults.keys()), batches, strikes, pace=0.1)


def _strikes(chance: Random, faults: Sequence[Fault]) -> tuple[Strike, ...]:
    """In the order in which they come: some at once after another, some alone."""
    strikes = [
        Strike(
            fault,
            chance.uniform(0, _LAST),
            chance.uniform(0.05, 0.25),
            chance.random(),
            chance.random(),
        )
        for fault in faults
    ]
    return tuple(sorted(strikes, key=lambda strike: strike.at))


def _batch(
    chance: Random, name: str, rows: int, *, after: float, cancelled: bool = False
) -> BatchPlan:
    lines = tuple((f"{name}-{n}", chance.choice(MODELS), chance.randint(1, 6)) for n in range(rows))
    return BatchPlan(name, chance.choice(TENANTS), after, lines, cancelled)
