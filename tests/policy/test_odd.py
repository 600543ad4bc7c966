"""Numbers without end, and members at odds."""

from pathlib import Path

import pytest

from gateway.policy.loader import load_policy
from tests.support.policies import faults_of, write_policy

BASE = "targets:\n  up:\n    base_url: http://127.0.0.1:9/v1\n    models: [m1]\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("weight: .inf", "weight: must be a number with an end"),
        ("price: {input: .nan}", "price.input: must be a number with an end"),
        ("limits: {tokens_per_minute: 1.0e+13}", "limits.tokens_per_minute: must be at most 10^12"),
        (f"context: {10**30}", "context: must be at most 10^12"),
        (f"models: [{10**30}]", "models[0]: must be at most 10^12"),
        (
            "lanes: {batch: {auto: true, max_in_flight: 4, floor: 8}}",
            "lanes.batch.floor: 8 is above max_in_flight, 4",
        ),
        (
            "lanes: {batch: {auto: true, max_in_flight: 40, start: 100}}",
            "lanes.batch.start: 100 is above max_in_flight, 40",
        ),
        (
            "lanes: {batch: {auto: true, floor: 8, start: 6}}",
            "lanes.batch.start: 6 is below floor, 8",
        ),
        (
            "engine: {max_num_seqs: 256, max_num_batched_tokens: 2}",
            "engine.max_num_batched_tokens: 2 is below max_num_seqs, 256",
        ),
        (
            "engine: {max_num_batched_tokens: 128}",
            "engine.max_num_batched_tokens: 128 is below max_num_seqs, 256",
        ),
        (
            "engine: {max_num_seqs: 4096}",
            "engine.max_num_seqs: 4096 is above max_num_batched_tokens, 2048",
        ),
        ("retry: {base: 9s, cap: 8s}", "retry.base: is longer than cap"),
        ("breaker: {pause: 2m, longest: 1m}", "breaker.pause: is longer than longest"),
        (
            "{kind: local, worker: {rows: 8}}",
            "worker.reserved_rows: leaves none of 8 rows for offline work",
        ),
        ("{kind: vllm, priority: higher}", "priority: for kind: vllm lower is sooner; give true"),
        ("{kind: local, priority: dynamo}", "priority: for kind: local lower is sooner; leave"),
        ("{kind: azure, priority: true}", "priority: is not available for kind: azure"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, fault: str, tmp_path: Path) -> None:
    """With the line of the member."""
    base = BASE.removesuffix("    models: [m1]\n") if text.startswith("models") else BASE
    lines = text[1:-1].split(", ") if text.startswith("{") else [text]
    whole = base + "".join(f"    {line}\n" for line in lines)
    (found,) = faults_of(write_policy(tmp_path, whole))
    assert found.startswith(f"{whole.count(chr(10))}: targets.up.{fault}")


@pytest.mark.parametrize(
    "text",
    [
        "lanes: {batch: {auto: true, max_in_flight: 2}}",
        "lanes: {batch: {auto: true, max_in_flight: 0, floor: 8}}",
        "lanes: {batch: {max_in_flight: 4, start: 32}}",
        "lanes: {batch: {auto: true, floor: 40}}",
        "engine: {max_num_seqs: 64, max_num_batched_tokens: 64}",
        "priority: higher",
        "priority: dynamo",
        "retry: {base: 9s}",
        "retry: {cap: 10ms}",
        "breaker: {pause: 1s, longest: 1s}",
    ],
)
def test_defaults_give_way_to_what_is_said(text: str, tmp_path: Path) -> None:
    """And what an engine of no known kind reads is not known."""
    load_policy(write_policy(tmp_path, f"{BASE}    {text}\n"))
