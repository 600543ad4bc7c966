"""What is said about wrong members."""

from pathlib import Path

import pytest

from gateway.policy.faults import RENAMED
from gateway.policy.lanes import LaneLimits
from gateway.policy.model import ModelPolicy, Policy
from gateway.policy.target import RateLimits, RetryPolicy, TargetPolicy
from tests.support.policies import faults_of, write_policy

BASE = "targets:\n  up:\n    base_url: http://127.0.0.1:9/v1\n    models: [m1]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("    lanes: {elastic: {max_wait: 9 parsecs}}\n", "a duration is seconds, or text such as"),
        ("    lanes: {elastic: {max_wait: -1}}\n", "a duration is seconds, or text such as"),
        ("    lanes: {batch: {max_in_flight: many}}\n", "must be a whole number"),
        ("    lanes: 7\n", "must be a mapping of interactive, elastic, batch"),
        ("    kind: vlm\n", "must be 'openai', 'vllm', 'sglang', 'azure' or 'local'"),
        ("    lanes: {batch: autoo}\n", "the only word is auto"),
        ("    priority: hi\n", "give true, false, lower, higher or dynamo"),
        ("    priority: [lower]\n", "give true, false, lower, higher or dynamo"),
        ("    objectives: {batch: a b}\n", "'a b' is no name of an object"),
        ("    retry: {attempts: 0}\n", "must be at least 1"),
        ("    zzzzzz: 1\n", "unknown key; known are kind, base_url"),
        ("    price: {input: 1, outputs: 1}\n", "unknown key; did you mean 'output'?"),
        ("    price: {input: -1}\n", "must be at least 0"),
        ("    lanes: {batch: 64}\n", "give auto, or a mapping such as {max_in_flight: 64}"),
        ("    lanes: {batch: }\n", "give auto, or a mapping such as {max_in_flight: 64}"),
        ("    lanes: {batch: {itl_target: -5ms}}\n", "24h, and not negative"),
        ("    lanes: {batch: {itl_target: 0}}\n", "24h, and above 0"),
        ("    lanes: {batch: {itl_target: 11s}}\n", "24h, and at most 10s"),
        ("    lanes: {batch: {itl_target: 1e300}}\n", "a duration is seconds"),
        ("    timeouts: {total: 400d}\n", "24h, and at most 366d"),
        ("    worker: {itl_target: 0}\n", "24h, and above 0"),
        ("    worker: {context: 10000000}\n", "must be at most 1,048,576"),
        ("    breaker: 7\n", "give off, or a mapping such as {failures: 5}"),
        ("    stream_usage: perhaps\n", "must be true or false"),
        ("    weight: heavy\n", "must be a number"),
        ("    weight: 'inf'\n", "must be a number with an end"),
        ("    weight: 1000001\n", "must be at most 1,000,000"),
        ("    api_keys: x\n", "must be a list, as in [a, b]"),
        ("    headers: 7\n", "must be a mapping"),
        ("    health: x\n", "must begin with /"),
        ("    api_key: 5\n", "must be text"),
        ("    objectives: {bulk: x}\n", "objectives.bulk: must be 'interactive'"),
        (
            "    lanes: {batch: {when: late, late: {max_cost: 1, windows: 1h}}}\n",
            "did you mean 'window'?",
        ),
        (
            "    lanes: {batch: {when: late, late: {max_cost: 1, window: a day}}}\n",
            "a duration is seconds",
        ),
        ("    lanes: {zzz: {}}\n", "unknown key; known are interactive, elastic, batch"),
    ],
)
def test_each_fault_has_line_path_and_reason(text: str, said: str, tmp_path: Path) -> None:
    """Wrong types, durations, choices and names."""
    (fault,) = faults_of(write_policy(tmp_path, BASE + text))
    assert fault.startswith("5: targets.up.")
    assert said in fault


def test_an_empty_list_of_models_is_said_to_be_empty(tmp_path: Path) -> None:
    """In the words of a list, whatever it is made into."""
    (fault,) = faults_of(write_policy(tmp_path, BASE.replace("[m1]", "[]")))
    assert fault == "4: targets.up.models: must not be empty"


def test_words_for_models_and_digests(tmp_path: Path) -> None:
    """What is wanted is said, and not what a pattern looks like."""
    text = "targets:\n  a: {base_url: http://h/v1, models: yes}\n"
    wanted = "give a list of names, or a mapping: public name: the target's name"
    assert faults_of(write_policy(tmp_path, text)) == [f"2: targets.a.models: {wanted}"]
    (fault,) = faults_of(write_policy(tmp_path, BASE + "keys: {k: {sha256: abc}}\n"))
    assert "64 of 0-9 and a-f" in fault
    assert "headway keys hash" in fault


def test_a_target_without_an_address(tmp_path: Path) -> None:
    """Only the bundled worker may have none."""
    text = "targets:\n  a: {models: [m]}\n  b: {kind: local, models: [m]}\n"
    assert faults_of(write_policy(tmp_path, text)) == ["2: targets.a: base_url is missing"]


def test_a_missing_member_is_named_at_its_owner(tmp_path: Path) -> None:
    """The line is that of what it is missing from."""
    text = "targets:\n  a:\n    base_url: http://x\n"
    assert faults_of(write_policy(tmp_path, text)) == ["2: targets.a: models is missing"]


def test_a_wrong_value_is_not_repeated(tmp_path: Path) -> None:
    """It may be a secret in the wrong place."""
    text = BASE + "    retry: SECRET1\n    api_key: [SECRET1]\n"
    assert "SECRET1" not in "".join(faults_of(write_policy(tmp_path, text)))


def test_renamed_keys_lead_to_names_that_exist() -> None:
    """No advice sends a reader to an unknown name."""
    models = (
        Policy,
        ModelPolicy,
        TargetPolicy,
        RateLimits,
        LaneLimits,
        RetryPolicy,
    )
    known = {name for model in models for name in model.model_fields}
    assert set(RENAMED.values()) <= known
    assert not set(RENAMED) & known
