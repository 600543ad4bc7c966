"""Targets by name."""

import pytest

from gateway.core.errors import ConfigError
from gateway.policy.model import Policy
from gateway.providers.registry import Registry, azure_url


async def test_targets_of_a_policy() -> None:
    """Every target can be got by its name, and its secrets are known to its scrubber."""
    entry = {"base_url": "http://127.0.0.1:1/v1", "models": ["m"], "api_key": "sk-1"}
    registry = Registry.from_policy(Policy.model_validate({"targets": {"a": entry}}))
    assert registry.get("a").name == "a"
    assert registry.scrubber("a").clean("key sk-1") == "key ***"
    await registry.aclose()


def test_a_target_without_address_is_refused() -> None:
    """A local target whose address was not filled in cannot be called."""
    policy = Policy.model_validate({"targets": {"a": {"kind": "local", "models": ["m"]}}})
    with pytest.raises(ConfigError, match="base_url"):
        Registry.from_policy(policy)


@pytest.mark.parametrize(
    "written",
    ["https://r.example.com", "https://r.example.com/openai", "https://r.example.com/openai/v1/"],
)
def test_the_address_of_an_azure_resource(written: str) -> None:
    """The path is known, so a policy may write any part of it."""
    assert azure_url(written, dated=False) == "https://r.example.com/openai/v1"
    assert azure_url(written, dated=True) == "https://r.example.com/openai"
    assert azure_url(written + "?a=b", dated=False).endswith("/openai/v1?a=b")
