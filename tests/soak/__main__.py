"""``python -m tests.soak --minutes 30``: interactive load with faults; nothing may be left behind.

First as many calls are open at once as ever may be, then a load runs for 20 seconds; there memory
and the rest are read, and again at the end. The load is 60 % of what it and the gateway reach
together on the machine. 5 % of the targets' answers are broken, 5 % of the clients leave, one of
two targets comes and goes. Each failed call must have a fault that explains it, each call must be
in the ledger once, and memory, descriptors, tasks and places must be what they were.
"""

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from tests.soak.run import Outcome, Plan, soak


def main() -> int:
    """Run it; 1 when something was found."""
    arguments = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    arguments.add_argument("--minutes", type=float, default=30.0)
    arguments.add_argument("--seed", type=int, help="default: drawn, and printed")
    arguments.add_argument("--rate", type=float, default=0.0, help="calls a second; default: 60 %%")
    given = arguments.parse_args()
    seed = secrets.randbelow(10**6) if given.seed is None else given.seed
    folder = Path(tempfile.mkdtemp(prefix="soak"))
    _say(f"seed {seed}, {given.minutes:g} minutes, in {folder}")
    outcome = soak(Plan(60 * given.minutes, seed, given.rate), folder)
    _say(_told(outcome))
    return 1 if outcome.faults else 0


def _told(outcome: Outcome) -> str:
    first, last = outcome.readings
    lines = [
        f"{outcome.filled} calls at once, then {outcome.rate:.0f} a second: {dict(outcome.calls)}",
        f"broken answers: {dict(outcome.struck)}",
        (
            f"memory {first.rss / 2**20:.1f} -> {last.rss / 2**20:.1f} MiB, descriptors "
            f"{first.files} -> {last.files}, kept connections {first.kept} -> {last.kept}, "
            f"tasks {first.tasks:g} -> {last.tasks:g}, places {last.places:g}"
        ),
        f"MiB each minute: {' '.join(str(size >> 20) for size in outcome.memory)}",
        *outcome.faults[:50],
        "SOUND" if not outcome.faults else f"NOT SOUND: {len(outcome.faults)} findings",
    ]
    return "\n".join(lines)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
