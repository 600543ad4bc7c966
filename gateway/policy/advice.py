"""What is probably not meant in a policy that can be used all the same."""

from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit, urlunsplit

from gateway.policy.model import Policy
from gateway.policy.tree import Place

_ENDPOINTS = ("/chat/completions", "/completions", "/embeddings", "/responses", "/models")


def advice(policy: Policy) -> Iterator[tuple[Place, str]]:
    """Where something looks wrong, and what is likely right."""
    for name, target in policy.targets.items():
        if target.base_url is None or target.kind == "azure":
            continue
        parts = urlsplit(target.base_url)
        said = _fault(parts.path)
        if said:
            yield ("targets", name, "base_url"), f"{said}; probably {_likely(parts)} is meant"


def _fault(path: str) -> str | None:
    bare = path.rstrip("/")
    if bare.endswith(_ENDPOINTS):
        return "it names an endpoint, and those are appended to it"
    return None if bare else "it has no path, and the API of most servers is below /v1"


def _likely(parts: SplitResult) -> str:
    """The address without an endpoint, a user and a query; the last two may be secrets."""
    path = parts.path.rstrip("/")
    for endpoint in _ENDPOINTS:
        path = path.removesuffix(endpoint)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path or "/v1", "", ""))
