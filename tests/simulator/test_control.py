"""An engine that changes under way."""

import pytest

from gateway.core.errors import InvalidRequest
from gateway.simulator.control import Control
from gateway.simulator.engine import Engine
from tests.support.simulated import PROFILE


def test_speed_is_measured_from_the_start_and_other_changes_stay() -> None:
    """Half twice is half."""
    engine = Engine(PROFILE)
    control = Control(engine)
    control.change(b'{"speed": 0.5, "kv_tokens": 900}')
    control.change(b'{"speed": 0.5, "metrics": false}')
    assert engine.profile.seconds(1, 0, 0) == 2 * PROFILE.seconds(1, 0, 0)
    assert control.state()["kv_tokens"] == 900
    assert not control.metrics


@pytest.mark.parametrize(
    "body",
    [b'{"speed": 0}', b'{"kv_tokens": 0}', b'{"kv": 5}', b'{"speed": 2, "max_num_seqs": 9999}'],
)
def test_a_change_that_cannot_be_is_none(body: bytes) -> None:
    """All of it or nothing."""
    engine = Engine(PROFILE)
    control = Control(engine)
    before = control.state()
    with pytest.raises(InvalidRequest):
        control.change(body)
    assert control.state() == before
    assert engine.profile == PROFILE
