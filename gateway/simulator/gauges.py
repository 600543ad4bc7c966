"""What the engine says of itself, with the names of real ones."""

from collections.abc import Mapping

from gateway.simulator.clockwork import Clockwork

FLAVOURS = ("vllm", "sglang")
_BLOCK = 16


def metrics_text(clockwork: Clockwork, flavour: str, model: str) -> str:
    """Prometheus text as vLLM or SGLang write it."""
    engine = clockwork.engine
    running, waiting = engine.running, engine.waiting
    if flavour == "sglang":
        label = f'{{model_name="{model}"}}'
        values = {
            "sglang:num_running_reqs": running,
            "sglang:num_queue_reqs": waiting,
            "sglang:token_usage": round(engine.kv_usage, 4),
            "sglang:num_used_tokens": engine.kv_used,
            "sglang:max_total_num_tokens": engine.profile.kv_tokens,
        }
        counters = {
            "sglang:prompt_tokens_total": clockwork.prompt_tokens,
            "sglang:generation_tokens_total": clockwork.output_tokens,
        }
        return _text("gauge", label, values) + _text("counter", label, counters)
    label = f'{{engine="0",model_name="{model}"}}'
    gauges = {
        "vllm:num_requests_running": running,
        "vllm:num_requests_waiting": waiting,
        "vllm:kv_cache_usage_perc": round(engine.kv_usage, 6),
    }
    counters = {
        "vllm:num_preemptions_total": engine.preemptions,
        "vllm:prompt_tokens_total": clockwork.prompt_tokens,
        "vllm:generation_tokens_total": clockwork.output_tokens,
    }
    blocks = engine.profile.kv_tokens // _BLOCK
    cache = f'{{block_size="{_BLOCK}",engine="0",num_gpu_blocks="{blocks}"}}'
    return (
        _text("gauge", label, gauges)
        + _text("counter", label, counters)
        + _text("gauge", cache, {"vllm:cache_config_info": 1})
    )


def _text(kind: str, label: str, values: Mapping[str, float]) -> str:
    return "".join(f"# TYPE {name} {kind}\n{name}{label} {values[name]}\n" for name in values)
