"""``python -m tests.fuzz --minutes 10``: changed request bodies, and changed answers of a target.

Every call must end in time, in a whole answer or an error of the API's form, never with 500, and
be in the ledger once. A seed gives the same changes.
"""

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from tests.fuzz.run import fuzz


def main() -> int:
    """Run it; 1 when something was found."""
    arguments = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    arguments.add_argument("--minutes", type=float, default=10.0)
    arguments.add_argument("--seed", type=int, help="default: drawn, and printed")
    given = arguments.parse_args()
    seed = secrets.randbelow(10**6) if given.seed is None else given.seed
    _say(f"seed {seed}, {given.minutes:g} minutes")
    outcome = fuzz(60 * given.minutes, seed, Path(tempfile.mkdtemp(prefix="fuzz")))
    _say(f"{outcome.calls.total()} calls: {dict(outcome.calls.most_common())}")
    for fault in outcome.faults[:30]:
        _say(fault)
    _say(f"NOT SOUND: {len(outcome.faults)} findings" if outcome.faults else "SOUND")
    return 1 if outcome.faults else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
