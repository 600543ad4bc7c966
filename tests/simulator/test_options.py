"""Options that make sense."""

import math
from typing import Any

import pytest

from gateway.core.errors import ConfigError
from gateway.simulator.options import EngineOptions
from tests.support.simulated import PROFILE


def test_the_model_is_named_after_the_profile() -> None:
    """Unless it has a name."""
    assert EngineOptions(PROFILE).served_model == "test"
    assert EngineOptions(PROFILE, model="m").served_model == "m"


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": "x"},
        {"flavour": "x"},
        {"scale": 0.0},
        {"scale": math.nan},
        {"scale": math.inf},
        {"output_tokens": 0},
    ],
)
def test_nonsense_is_refused(changes: dict[str, Any]) -> None:
    """Before anything is served."""
    with pytest.raises(ConfigError):
        EngineOptions(PROFILE, **changes)
