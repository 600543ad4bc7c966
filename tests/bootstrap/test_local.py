"""Local workers get their addresses once."""

import pytest

from gateway.bootstrap import local
from gateway.bootstrap.local import parse_addresses, pick_addresses, with_addresses
from gateway.core.errors import ConfigError
from gateway.policy.model import Policy

_OTHER = {"base_url": "http://127.0.0.1:1/v1", "models": ["o"]}
_POLICY = Policy.model_validate(
    {
        "targets": {
            "a": {"kind": "local", "models": ["m"]},
            "b": {"kind": "local", "models": ["n"]},
            "c": _OTHER,
        }
    }
)


def test_each_local_target_gets_a_port_of_its_own() -> None:
    """Others keep the address they have."""
    picked = pick_addresses(_POLICY)
    assert set(picked) == {"a", "b"}
    assert picked["a"] != picked["b"]
    filled = with_addresses(_POLICY, picked)
    assert filled.targets["a"].base_url == picked["a"]
    assert filled.targets["c"].base_url == "http://127.0.0.1:1/v1"


def test_a_worker_that_cannot_run_is_told_before_it_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With what to install; who has targets of their own alone is not asked for it."""
    monkeypatch.setattr(local, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="more packages"):
        pick_addresses(_POLICY)
    assert pick_addresses(Policy.model_validate({"targets": {"c": _OTHER}})) == {}


def test_a_local_target_without_address_is_refused() -> None:
    """The message names it."""
    with pytest.raises(ConfigError, match="target b"):
        with_addresses(_POLICY, {"a": "http://127.0.0.1:2/v1"})


def test_addresses_are_read_from_the_command_line() -> None:
    """NAME=URL, nothing else."""
    assert parse_addresses(["a=http://h/v1"]) == {"a": "http://h/v1"}
    with pytest.raises(ConfigError, match="NAME=URL"):
        parse_addresses(["a"])
