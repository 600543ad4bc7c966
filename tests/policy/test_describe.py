"""The policy as it may be shown."""

import json

from gateway.policy.describe import describe, mask_address
from gateway.policy.loader import load_policy
from gateway.policy.model import Policy


def test_cfg_11_no_secret_is_shown() -> None:
    """Provider key, client key, header and address are masked; their names stay."""
    policy = Policy.model_validate(
        {
            "targets": {
                "up": {
                    "base_url": "https://user:SECRET1@host:8443/v1?key=SECRET2",
                    "api_key": "SECRET3",
                    "headers": {"x-token": "SECRET4"},
                    "models": ["m1"],
                }
            },
            "tenants": {
                "t": {
                    "webhooks": [
                        {"url": "https://x/SECRET6", "secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="}
                    ]
                }
            },
            "keys": {"me": {"key": "SECRET5"}, "you": {"sha256": "ab" * 32}},
        }
    )
    shown = describe(policy)
    text = json.dumps(shown)
    assert "SECRET" not in text
    assert "MDEy" not in text
    assert "SECRET" not in repr(policy.targets["up"].api_key)
    assert "ab" * 32 not in text
    assert {"api_key", "base_url"} <= set(shown["targets"]["up"])
    assert list(shown["targets"]["up"]["headers"]) == ["x-token"]
    assert list(shown["keys"]) == ["me", "you"]
    assert shown["targets"]["up"]["base_url"].endswith("@host:8443/v1?key=**********")


def test_defaults_are_shown() -> None:
    """What the file does not say is there."""
    assert describe(load_policy(None))["classify"]["default"] == "interactive"


def test_a_plain_address_stays() -> None:
    """Nothing to hide."""
    assert mask_address("http://127.0.0.1:8001/v1") == "http://127.0.0.1:8001/v1"
