"""Load as engines tell it."""

import pytest

from gateway.core.targets import EngineLoad
from gateway.providers.engine_metrics import engine_load

VLLM = b"""# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 5.0
vllm:num_requests_waiting{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.41
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.83
vllm:num_requests_running_other 99
"""
SGLANG = b"""sglang:num_running_reqs{model_name="m"} 4
sglang:num_queue_reqs{model_name="m"} 1
sglang:token_usage{model_name="m"} 0.3
"""
WORKER = b"headway_worker_rows_running 8\nheadway_worker_sequences_waiting 2\n"


@pytest.mark.parametrize(
    ("page", "load"),
    [
        (VLLM, EngineLoad(7, 3, 0.83)),
        (b"vllm:gpu_cache_usage_perc 0.5\n", EngineLoad(0, 0, 0.5)),
        (SGLANG, EngineLoad(4, 1, 0.3)),
        (WORKER, EngineLoad(8, 2, 0)),
        (b"process_cpu_seconds_total 7\n", None),
        (b"<html>not found</html>", None),
        (b"vllm:num_requests_running NaN\nvllm:num_requests_waiting x\n", None),
        (b"vllm:num_requests_running -1\n\xff\n", None),
        (b"vllm:kv_cache_usage_perc 1.7\n", EngineLoad(0, 0, 1)),
    ],
)
def test_pages(page: bytes, load: EngineLoad | None) -> None:
    """Engines behind one address are added up, the fullest memory counts, nonsense does not."""
    assert engine_load(page) == load
