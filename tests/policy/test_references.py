"""Names that lead nowhere."""

from pathlib import Path

import pytest

from tests.support.policies import faults_of, write_policy

BASE = "targets:\n  up: {base_url: 'http://127.0.0.1:9/v1', models: [m1]}\n"

LATE = """targets:
  up:
    base_url: http://127.0.0.1:9/v1
    models: [m1]
    lanes:
      batch:
        when: WHEN
        late: {max_cost: 3}
"""


@pytest.mark.parametrize(
    ("when", "fault"),
    [("idle", "is for when: late"), ("late", "needs a price: say what tokens cost in targets.up")],
)
def test_a_cost_cap_needs_late_work_and_a_price(when: str, fault: str, tmp_path: Path) -> None:
    """Said with the line of the cap."""
    (found,) = faults_of(write_policy(tmp_path, LATE.replace("WHEN", when)))
    assert found.startswith(f"8: targets.up.lanes.batch.late: {fault}")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("classify: {rules: {r: {lane: batch, keys: [k9]}}}\n", "classify.rules.r.keys[0]: no key"),
        (
            "classify: {rules: {r: {lane: batch, tenants: [t9]}}}\n",
            "classify.rules.r.tenants[0]: no tenant",
        ),
        (
            "classify: {rules: {r: {lane: batch, models: [m1, m9]}}}\n",
            "classify.rules.r.models[1]: no model is called 'm9'; there are m1",
        ),
        ("keys: {a: {key: x, models: [m9]}}\n", "keys.a.models[0]: no model"),
        ("keys: {a: {key: x}, b: {key: x}}\n", "keys.b: the same key as keys.a"),
        ("keys: {a: {key: }}\n", "keys.a.key: is empty"),
        ("keys: {a: {sha256: ''}}\n", "keys.a.sha256: is empty"),
        ("models: {m9: {}}\n", "models.m9: no target serves it; there are m1"),
        ("models: {m1: {fallback: [m9]}}\n", "models.m1.fallback[0]: no model is called 'm9'"),
        ("models: {m1: {longer_context: m9}}\n", "models.m1.longer_context: no model is called"),
        ("models: {m1: {fallback: [m1]}}\n", "models.m1: cannot take over from itself"),
        ("models: {m1: {aliases: [m1]}}\n", "models.m1.aliases[0]: is a model of a target"),
        ("models: {m1: {aliases: [x, x]}}\n", "models.m1.aliases[1]: is an alias of models.m1"),
        ("models: {m1: {alias: [x]}}\n", "models.m1.alias: unknown key; it is called 'aliases'"),
    ],
)
def test_what_points_nowhere_is_refused(text: str, fault: str, tmp_path: Path) -> None:
    """Rules and keys name only what exists; no key stands for two names."""
    (found,) = faults_of(write_policy(tmp_path, BASE + text))
    assert found.startswith(f"3: {fault}")


@pytest.mark.parametrize("url", ["vllm:8000", "ftp://x", "http://", "http://x:99999", "/v1"])
def test_an_address_must_be_one(url: str, tmp_path: Path) -> None:
    """Only http and https, with a host."""
    text = f"targets:\n  up: {{base_url: '{url}', models: [m1]}}\n"
    (found,) = faults_of(write_policy(tmp_path, text))
    assert found == "2: targets.up.base_url: is not an http or https address"


def test_an_empty_header_is_refused(tmp_path: Path) -> None:
    """Headers carry secrets too."""
    text = "targets:\n  up: {base_url: 'http://x', models: [m1], headers: {x-token: ''}}\n"
    (found,) = faults_of(write_policy(tmp_path, text))
    assert found.startswith("2: targets.up.headers.x-token: is empty")


HOOK = "tenants:\n  t:\n    webhooks:\n      - {url: 'https://x.example/h', secret: %s}\n"
GOOD = "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (HOOK % "''", "webhooks[0].secret: is empty"),
        (HOOK % "abc", "webhooks[0].secret: a webhook secret is whsec_ and base64"),
        ((HOOK % GOOD).replace("https", "ftp"), "webhooks[0].url: is not an http or https"),
        (HOOK % f"{GOOD}, events: [batch.done]", "webhooks[0].events[0]: no event is called"),
        (HOOK % f"{GOOD}, event: x", "webhooks[0].event: unknown key; did you mean 'events'?"),
        (HOOK % GOOD + "      - url: x\n", "webhooks[1]: secret is missing"),
    ],
)
def test_a_webhook_must_be_usable(text: str, fault: str, tmp_path: Path) -> None:
    """Its place is told, its secret never."""
    (found,) = faults_of(write_policy(tmp_path, BASE + text))
    assert found.split(": ", 1)[1].startswith(f"tenants.t.{fault}")
    assert int(found.split(":")[0]) in {6, 7}
    assert GOOD not in found


def test_an_endpoint_is_given_once(tmp_path: Path) -> None:
    """Two with one address would be told twice."""
    line = (HOOK % GOOD).splitlines(keepends=True)[-1]
    (found,) = faults_of(write_policy(tmp_path, BASE + HOOK % GOOD + line))
    assert found == "7: tenants.t.webhooks[1].url: is given twice"


def test_keys_of_a_target(tmp_path: Path) -> None:
    """An empty one is named by its place; limits and keys that cannot be are refused by line."""
    text = (
        "targets:\n  up:\n    base_url: 'http://h/v1'\n    models: [m1]\n"
        "    api_keys:\n      - a\n      - ''\n"
    )
    (found,) = faults_of(write_policy(tmp_path, text))
    assert found.startswith("7: targets.up.api_keys[1]: is empty")
    text = (
        "targets:\n  up:\n    base_url: 'http://h/v1'\n    models: [m1]\n"
        "    limits:\n      requests_per_minute: 0\n      rpm: 3\n"
    )
    low, unknown = faults_of(write_policy(tmp_path, text))
    assert low.startswith("6: targets.up.limits.requests_per_minute: ")
    assert unknown.startswith("7: targets.up.limits.rpm: unknown key; it is called")
