"""The bundled worker's options come from policy and settings."""

from pathlib import Path
from typing import Any

import pytest

from gateway.bootstrap.worker import worker_options
from gateway.core.errors import ConfigError
from gateway.core.settings import load_settings
from gateway.policy.loader import load_policy
from gateway.policy.model import Policy

LOCAL = {"kind": "local", "models": {"public": "own"}, "worker": {"rows": 9, "reserved_rows": 2}}
REMOTE = {"base_url": "http://127.0.0.1:1/v1", "models": ["m"]}


def policy(**targets: Any) -> Policy:
    return Policy.model_validate({"targets": targets})


def test_the_default_policy_has_its_one_worker() -> None:
    """Without a policy the packaged model is served under its name."""
    options = worker_options(load_settings(), load_policy(None), None, 9001)
    assert (options.port, options.model) == (9001, None)
    assert options.served_model == "smollm2-135m-instruct"


def test_policy_and_settings_are_handed_on() -> None:
    """Rows and names from the target, model, faults and address from the settings."""
    settings = load_settings(
        model_path=Path("tiny"), fault_injection="nan_prompt=X", host="127.0.0.2", device="cpu"
    )
    options = worker_options(settings, policy(a=LOCAL, b=REMOTE), "a", 9001)
    assert (options.rows, options.reserved_rows, options.served_model) == (9, 2, "own")
    assert (options.model, options.host, options.faults.nan_prompt) == ("tiny", "127.0.0.2", "X")
    assert options.device == "cpu"


@pytest.mark.parametrize(
    ("targets", "name", "message"),
    [
        ({"b": REMOTE}, None, "0 local targets"),
        ({"a": LOCAL, "c": LOCAL}, None, "2 local targets"),
        ({"a": LOCAL, "b": REMOTE}, "b", "no local target b"),
    ],
)
def test_a_target_that_is_not_local_is_refused(
    targets: dict[str, Any], name: str | None, message: str
) -> None:
    """One sentence says what is wrong."""
    with pytest.raises(ConfigError, match=message):
        worker_options(load_settings(), policy(**targets), name, 9001)
