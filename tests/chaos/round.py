"""One round: start everything, run the batches under fire, stop, judge."""

import json
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.checker import Verdict, judge
from tests.chaos.client import Client
from tests.chaos.faults import Injector
from tests.chaos.plan import Fault, RoundPlan
from tests.chaos.plant import Plant

#: Longer than a reconciler's pause: what it has to find may not be there before that.
_REST_SECONDS = 150.0


@dataclass
class Outcome:
    """What was done and what came of it."""

    verdict: Verdict
    strikes: Counter[Fault]
    seconds: float


def run_round(plan: RoundPlan, folder: Path) -> Outcome:
    """Run ``plan`` in an empty folder. What is needed to judge it stays there."""
    started = time.monotonic()
    plant = Plant(plan, folder)
    try:
        client = Client(plant.gateway, plan, folder)
        client.start()
        injector = Injector(plant, client)
        injector.run(plan)
        client.join(_REST_SECONDS)
        client.enough.set()
        client.join(30)
        (folder / "usage.json").write_text(json.dumps(plant.usage()))
    except BaseException:
        plant.kill()
        raise
    plant.stop()
    return Outcome(judge(plan, folder), injector.counted, time.monotonic() - started)
