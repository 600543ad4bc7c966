"""Options are checked where they are built."""

import pytest

from gateway.core.errors import ConfigError
from gateway.worker.options import Faults, WorkerOptions


def test_faults_are_read_from_text() -> None:
    """Each fault by name, empty text is none."""
    text = "nan_row=3,nan_prompt=X, crash_prompt=Y,oom_rows=8,oom_tokens=2000"
    assert Faults.parse(text) == Faults(3, "X", "Y", 8, 2000)
    assert Faults.parse("nan_row").nan_row == 1
    assert Faults.parse("") == Faults()


@pytest.mark.parametrize("text", ["no_such=1", "oom_rows=many"])
def test_a_wrong_fault_is_refused(text: str) -> None:
    """A typo in a test setting must not pass for a fault."""
    with pytest.raises(ConfigError):
        Faults.parse(text)


@pytest.mark.parametrize("wrong", [{"rows": 4, "reserved_rows": 4}, {"context": 1}])
def test_impossible_sizes_are_refused(wrong: dict[str, int]) -> None:
    """A worker that could hold nothing does not start."""
    with pytest.raises(ConfigError):
        WorkerOptions(**wrong)  # type: ignore[arg-type]  # both members are integers
