"""What a policy means once it is read."""

import pytest
from pydantic import ValidationError

from gateway.core.lanes import Lane
from gateway.policy.lanes import Lanes
from gateway.policy.model import KeyPolicy, Policy
from gateway.policy.target import TargetPolicy, TimeoutPolicy


def test_models_may_be_renamed_per_target() -> None:
    """A list keeps names, a mapping says what the target calls them; order is the file's."""
    policy = Policy.model_validate(
        {
            "targets": {
                "a": {"base_url": "http://a/v1", "models": ["m1", "m2"]},
                "b": {"base_url": "http://b/v1", "models": {"m1": "vendor/m-1"}},
            }
        }
    )
    assert policy.served() == {"m1": ("a", "b"), "m2": ("a",)}
    assert policy.targets["b"].models["m1"] == "vendor/m-1"
    assert policy.weight("nobody") == 1.0


def test_priority_is_for_engines_that_know_it() -> None:
    """The bundled worker does; others when the policy says so."""
    assert TargetPolicy(kind="local", models={"m": "m"}).rank_scale == "lower"
    assert TargetPolicy(base_url="http://a", models={"m": "m"}).rank_scale is None
    told = TargetPolicy(base_url="http://a", models={"m": "m"}, priority=True)
    assert told.rank_scale == "lower"


def test_a_key_is_given_in_one_form() -> None:
    """Neither none nor both."""
    for members in ({}, {"key": "x", "sha256": "a" * 64}):
        with pytest.raises(ValidationError, match="exactly one"):
            KeyPolicy.model_validate(members)


def test_limits_and_timeouts_as_values() -> None:
    """Each lane has its own limits; timeouts become what a provider takes."""
    assert Lanes().of(Lane.ELASTIC).max_wait == 300
    assert TimeoutPolicy(total=9).to_timeouts().total == 9


def test_one_way_to_give_keys() -> None:
    """One key or several; both at once is a mistake."""
    target = {"base_url": "http://a/v1", "models": ["m"], "api_keys": ["k1", "k2"]}
    assert len(TargetPolicy.model_validate(target).api_keys) == 2
    with pytest.raises(ValidationError, match="api_key or api_keys"):
        TargetPolicy.model_validate({**target, "api_key": "k"})


def test_what_only_azure_has() -> None:
    """A version elsewhere and Azure's own batches are refused."""
    azure = {"kind": "azure", "base_url": "https://r.example.com", "models": {"m": "my-deployment"}}
    assert TargetPolicy.model_validate({**azure, "api_version": "2024-10-21"}).api_version
    with pytest.raises(ValidationError, match="api_version is for"):
        TargetPolicy.model_validate({**azure, "kind": "openai", "api_version": "2024-10-21"})
    with pytest.raises(ValidationError, match="batch_api is not available"):
        TargetPolicy.model_validate({**azure, "batch_api": True})


def test_pages_that_may_call() -> None:
    """None unless they are listed; an address with a path is no origin."""
    targets = {"a": {"base_url": "http://a/v1", "models": ["m"]}}
    assert Policy.model_validate({"targets": targets}).cors.origins == ()
    for origin in ("https://app.example", "http://localhost:3000", "*"):
        policy = {"targets": targets, "cors": {"origins": [origin]}}
        assert Policy.model_validate(policy).cors.origins == (origin,)
    for origin in ("app.example", "https://app.example/", "https://a/b", "https://"):
        with pytest.raises(ValidationError, match="no origin"):
            Policy.model_validate({"targets": targets, "cors": {"origins": [origin]}})
