"""How the children are started."""

from pathlib import Path

from gateway.bootstrap.specs import dispatcher_spec, worker_specs
from gateway.core.settings import Settings
from gateway.policy.model import Policy

_LOCAL = {"here": "http://127.0.0.1:9001/v1"}
_POLICY = Policy.model_validate({"targets": {"here": {"kind": "local", "models": ["m"]}}})


def test_the_queue_address_is_no_argument(tmp_path: Path) -> None:
    """It may hold a password, so it travels in the environment."""
    spec = dispatcher_spec(Settings(data_dir=tmp_path), "redis://:secret@h", _LOCAL)
    assert not any("secret" in part for part in spec.argv)
    assert spec.env["HEADWAY_REDIS_URL"] == "redis://:secret@h"
    assert "here=http://127.0.0.1:9001/v1" in spec.argv


def test_each_local_target_has_a_worker() -> None:
    """At the address that was picked for it."""
    [spec] = worker_specs(Settings(), _POLICY, _LOCAL)
    assert spec.name == "worker here"
    assert list(spec.argv[-4:]) == ["--host", "127.0.0.1", "--port", "9001"]
