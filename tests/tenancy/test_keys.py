"""Who is let in."""

import hashlib

import pytest

from gateway.core.errors import ConfigError
from gateway.core.lanes import Lane
from gateway.policy.model import Policy
from gateway.tenancy.keys import Caller, KeyRing


def policy(**keys: object) -> Policy:
    """A policy with these keys."""
    target = {"base_url": "http://127.0.0.1:9/v1", "models": ["m1"]}
    return Policy.model_validate(
        {"targets": {"up": target}, "keys": keys, "tenants": {"team": {"weight": 3}}}
    )


def test_keys_in_clear_and_as_digest_are_found() -> None:
    """A key brings its tenant, weight, ceiling and models."""
    digest = hashlib.sha256(b"hashed-key").hexdigest()
    ring = KeyRing.from_policy(
        policy(
            clear={"key": "clear-key", "tenant": "team", "ceiling": "batch", "models": ["m1"]},
            hashed={"sha256": digest},
        ),
        None,
    )
    assert ring.find("clear-key") == Caller("clear", "team", 3.0, Lane.BATCH, frozenset({"m1"}))
    assert ring.find("hashed-key") == Caller("hashed", "default")
    assert len(ring) == 2


def test_the_simple_key() -> None:
    """The key of the settings belongs to the default tenant and may use everything."""
    caller = KeyRing.from_policy(policy(), "simple").find("simple")
    assert caller == Caller("default", "default")
    assert caller.may_use("anything")


def test_a_key_may_be_bound_to_models() -> None:
    """Other models are not for it."""
    assert not Caller("k", "t", models=frozenset({"m1"})).may_use("m2")


@pytest.mark.parametrize("token", ["", " ", "wrong", "clear-key2", "\ud800"])
def test_everything_else_is_denied(token: str) -> None:
    """No key, a wrong key and bytes that are no text find nobody, with and without keys."""
    assert KeyRing.from_policy(policy(clear={"key": "clear-key"}), "simple").find(token) is None
    assert KeyRing.from_policy(policy(), None).find(token) is None


def test_a_digest_is_not_a_key() -> None:
    """Who reads the policy file cannot call with what stands there."""
    digest = hashlib.sha256(b"hashed-key").hexdigest()
    assert KeyRing.from_policy(policy(hashed={"sha256": digest}), None).find(digest) is None


def test_two_names_cannot_share_a_key() -> None:
    """Else it would be unclear who pays."""
    with pytest.raises(ConfigError, match=r"keys\.b: the same key as keys\.a"):
        KeyRing.from_policy(policy(a={"key": "same"}, b={"key": "same"}), None)


def test_an_empty_simple_key_is_refused() -> None:
    """An empty key never opens the door."""
    with pytest.raises(ConfigError, match="empty"):
        KeyRing.from_policy(policy(), " ")


def test_aliases_come_with_their_model() -> None:
    """A key that may use a model may use it under every name."""
    policy = Policy.model_validate(
        {
            "targets": {"t": {"base_url": "http://x/v1", "models": ["m1", "m2"]}},
            "models": {"m1": {"aliases": ["a1"]}, "m2": {"aliases": ["a2"]}},
            "keys": {"k": {"key": "sk-1", "models": ["m1"]}},
        }
    )
    caller = KeyRing.from_policy(policy, None).find("sk-1")
    assert caller is not None
    assert [caller.may_use(name) for name in ("m1", "a1", "m2", "a2")] == [True, True, False, False]
