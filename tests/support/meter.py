"""The bill of a running gateway, as an operator reads it."""

import json
from typing import Any

from tests.support.serve import RunningHeadway, headway_command


def batch_bill(running: RunningHeadway) -> dict[str, Any]:
    """The batch lane of ``headway usage --json``."""
    answer = headway_command(["usage", "--json", "--data-dir", str(running.data_dir)])
    assert answer.returncode == 0, answer.stderr
    bill: dict[str, Any] = json.loads(answer.stdout)["lanes"]["batch"]
    return bill


def delivered(running: RunningHeadway) -> tuple[int, int]:
    """Prompt and completion tokens billed for batch rows."""
    bill = batch_bill(running)
    return bill["prompt_tokens"], bill["completion_tokens"]
