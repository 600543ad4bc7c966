"""What is probably not meant."""

import pytest

from gateway.policy.advice import advice
from gateway.policy.model import Policy


def told(base_url: str, **members: object) -> list[str]:
    """What is said about a target there."""
    target = {"base_url": base_url, "models": ["m"], **members}
    found = list(advice(Policy.model_validate({"targets": {"a": target}})))
    assert all(place == ("targets", "a", "base_url") for place, _ in found)
    return [message for _, message in found]


@pytest.mark.parametrize(
    ("base_url", "likely"),
    [
        ("http://h:8000", "http://h:8000/v1"),
        ("http://h/", "http://h/v1"),
        ("http://h/v1/chat/completions", "http://h/v1"),
        ("https://me:pw@h/api/v1/embeddings/?key=s", "https://h/api/v1"),
        ("http://h/chat/completions", "http://h/v1"),
        ("http://h/v1/responses", "http://h/v1"),
    ],
)
def test_a_path_that_is_probably_wrong(base_url: str, likely: str) -> None:
    """None at all, or one that names an endpoint; without what may be secret."""
    (said,) = told(base_url)
    assert said.endswith(f"probably {likely} is meant")


@pytest.mark.parametrize(
    "base_url", ["http://h/v1", "http://h/v1/", "https://h/v1beta/openai", "https://h/api/v3"]
)
def test_any_other_path_may_be_right(base_url: str) -> None:
    """Vendors have paths of their own, and Azure's address may have none."""
    assert told(base_url) == []
    assert told("https://h.openai.azure.com", kind="azure") == []
