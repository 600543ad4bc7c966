"""States follow each other as the contract says."""

import json

from gateway.batches.states import AFTER, at, before
from gateway.schemas.batch import BatchStatus
from gateway.store.batch_record import ENDED
from tests.support.contract import CONFORMANCE


def test_the_table_is_inside_the_contract() -> None:
    """No transition the contract does not know, but through finalizing where it allows both."""
    contract = json.loads((CONFORMANCE / "contract.json").read_text())["batch"]["states"]
    for state, following in AFTER.items():
        assert {following.value for following in following} <= set(contract[state.value])
    assert {state for state, following in AFTER.items() if not following} == ENDED


def test_before_and_at() -> None:
    """A cancel is possible in the three living states."""
    assert [state.value for state in before(BatchStatus.CANCELLING)] == [
        "validating",
        "in_progress",
        "finalizing",
    ]
    assert at(BatchStatus.IN_PROGRESS) == "in_progress_at"
