"""The worker's metrics as Prometheus text."""

from gateway.worker.engine import Engine

_HELP = {
    "rows_running": ("gauge", "Sequences that took part in the last step."),
    "rows_paused": ("gauge", "Sequences with a slot that did not."),
    "sequences_waiting": ("gauge", "Sequences without a slot."),
    "steps_total": ("counter", "Steps since the start."),
    "row_steps_total": ("counter", "Decoding rows, summed over all steps."),
    "prompt_tokens_total": ("counter", "Prompt tokens read."),
    "output_tokens_total": ("counter", "Tokens generated."),
    "busy_seconds_total": ("counter", "Seconds spent in steps."),
}


def metrics_text(engine: Engine) -> str:
    """All metrics; reading them costs the engine nothing."""
    counts = engine.counts
    values = {
        "rows_running": engine.running,
        "rows_paused": engine.paused,
        "sequences_waiting": engine.waiting,
        "steps_total": counts.steps,
        "row_steps_total": counts.row_steps,
        "prompt_tokens_total": counts.prompt_tokens,
        "output_tokens_total": counts.output_tokens,
        "busy_seconds_total": round(counts.busy_seconds, 6),
    }
    lines = []
    for name, (kind, text) in _HELP.items():
        full = f"headway_worker_{name}"
        lines += [f"# HELP {full} {text}", f"# TYPE {full} {kind}", f"{full} {values[name]}"]
    return "\n".join(lines) + "\n"
