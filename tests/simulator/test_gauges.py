"""Metrics with the names of real engines."""

import pytest

from gateway.simulator.clockwork import Clockwork
from gateway.simulator.engine import Engine
from gateway.simulator.gauges import metrics_text
from gateway.simulator.sequence import Sequence
from tests.support.simulated import PROFILE


@pytest.mark.parametrize(
    ("flavour", "names"),
    [
        (
            "vllm",
            [
                'vllm:num_requests_running{engine="0",model_name="m"} 8',
                'vllm:num_requests_waiting{engine="0",model_name="m"} 2',
                'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.2',
                'num_gpu_blocks="125"',
            ],
        ),
        (
            "sglang",
            [
                'sglang:num_running_reqs{model_name="m"} 8',
                'sglang:num_queue_reqs{model_name="m"} 2',
                'sglang:token_usage{model_name="m"} 0.2',
                'sglang:max_total_num_tokens{model_name="m"} 2000',
            ],
        ),
    ],
)
def test_gauges_tell_what_runs_waits_and_is_held(flavour: str, names: list[str]) -> None:
    """So that one reader serves real and simulated engines."""
    clockwork = Clockwork(Engine(PROFILE), 1.0)
    for _ in range(10):
        clockwork.engine.add(Sequence(50, 5))
    clockwork.engine.step()
    text = metrics_text(clockwork, flavour, "m")
    assert all(name in text for name in names), text
