"""What vLLM, SGLang and the bundled worker tell of their load, in Prometheus text."""

import math
import re

from gateway.core.targets import EngineLoad

#: Kinds of targets that tell.
ENGINES = frozenset({"vllm", "sglang", "local"})
_RUNNING = {"vllm:num_requests_running", "sglang:num_running_reqs", "headway_worker_rows_running"}
_WAITING = {
    "vllm:num_requests_waiting",
    "sglang:num_queue_reqs",
    "headway_worker_sequences_waiting",
    "headway_worker_rows_paused",
}
_KV = {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"}
_LINE = re.compile(
    rf"^({'|'.join(sorted(_RUNNING | _WAITING | _KV))})(?:\{{.*\}})?\s+(\S+)", re.MULTILINE
)


def engine_load(page: bytes) -> EngineLoad | None:
    """The load on a metrics page; None when it tells nothing of it.

    Engines of one server are added up; of their KV memories the fullest counts.
    """
    running = waiting = kv_use = 0.0
    found = False
    for name, text in _LINE.findall(page.decode("utf-8", "replace")):
        try:
            figure = float(text)
        except ValueError:
            continue
        if not math.isfinite(figure) or figure < 0:
            continue
        found = True
        if name in _RUNNING:
            running += figure
        elif name in _WAITING:
            waiting += figure
        else:
            kv_use = max(kv_use, figure)
    return EngineLoad(running, waiting, min(kv_use, 1.0)) if found else None
