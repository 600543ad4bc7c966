"""``python -m tests.chaos --rounds 20 --seed 7``: batches run to their end while everything dies.

Each round starts the real parts as processes, sends batches over HTTP, and kills, freezes and cuts
until they have ended. It is judged by the client's own history, the files it downloaded and the
log of the model server; never by the product's counters. A seed gives the same plan each time.
"""

import argparse
import secrets
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.chaos.checker import Verdict
from tests.chaos.plan import Fault, round_plan
from tests.chaos.round import Outcome, run_round

#: Of all rows; more would mean that the rounds end because rows fail, not because they are run.
_MOST_GIVEN_UP = 0.02


def main() -> int:
    """Run the rounds; 1 when one of them was not sound."""
    given = _arguments()
    seed = secrets.randbelow(10**6) if given.seed is None else given.seed
    folder = Path(tempfile.mkdtemp(prefix="chaos"))
    _say(f"seed {seed}, {given.rounds} rounds of {given.rows} rows, in {folder}")
    verdict, strikes = Verdict(), Counter[Fault]()
    bad = 0
    for number in range(given.first, given.first + given.rounds):
        place = folder / str(number)
        place.mkdir()
        outcome = run_round(round_plan(seed, number, given.rows), place)
        _say(f"round {number}: {_line(outcome)}")
        verdict, strikes = verdict + outcome.verdict, strikes + outcome.strikes
        if outcome.verdict.sound and not given.keep:
            shutil.rmtree(place)
        bad += not outcome.verdict.sound
    _say(_table(verdict, strikes, seed))
    given_up = verdict.given_up > _MOST_GIVEN_UP * verdict.rows
    if not (bad or given_up):
        if not given.keep:
            shutil.rmtree(folder)
        return 0
    _say(f"NOT SOUND: {bad} rounds, see {folder}" if bad else "too many rows were given up")
    return 1


def _arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    arguments.add_argument("--rounds", type=int, default=20)
    arguments.add_argument("--rows", type=int, default=2500, help="rows of a round")
    arguments.add_argument("--seed", type=int, help="default: drawn, and printed")
    arguments.add_argument("--keep", action="store_true", help="keep what sound rounds wrote")
    arguments.add_argument("--first", type=int, default=0, help="number of the first round")
    return arguments.parse_args()


def _line(outcome: Outcome) -> str:
    verdict = outcome.verdict
    strikes = ", ".join(f"{times} {fault}" for fault, times in sorted(outcome.strikes.items()))
    return (
        f"{outcome.seconds:.0f} s, {verdict.rows} rows, {strikes}; lost {verdict.lost}, "
        f"twice {verdict.twice}, phantom {verdict.phantom}, meter {verdict.meter}, "
        f"recomputed {verdict.recomputed} of {verdict.tokens}, given up {verdict.given_up}"
    )


def _table(verdict: Verdict, strikes: Counter[Fault], seed: int) -> str:
    figures = {
        **{f"{fault}": strikes[fault] for fault in Fault},
        "rows": verdict.rows,
        "delivered": verdict.delivered,
        "cancelled": verdict.cancelled,
        "given up": verdict.given_up,
        "lost": verdict.lost,
        "delivered twice": verdict.twice,
        "phantom": verdict.phantom,
        "meter difference, tokens": verdict.meter,
        "recomputed, tokens": verdict.recomputed,
        "delivered, tokens": verdict.tokens,
    }
    lines = [f"seed {seed}", *(f"{name:26} {value:>9,}" for name, value in figures.items())]
    return "\n".join([*lines, f"error codes {dict(verdict.codes)}"])


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
