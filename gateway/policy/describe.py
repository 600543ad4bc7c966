"""The policy as it may be shown: every default filled in, no secret."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from gateway.policy.model import Policy

_MASK = "**********"
_DIGEST_SHOWN = 8


def describe(policy: Policy) -> dict[str, Any]:
    """Return the whole policy JSON-ready; the names of all members stay.

    Keys, header values and whatever an address carries beside host and path are masked; of a
    webhook's address the path is masked, too, as it often is the receiver's secret.
    """
    shown = policy.model_dump(mode="json")
    for target in shown["targets"].values():
        if target["base_url"]:
            target["base_url"] = mask_address(target["base_url"])
    for tenant in shown["tenants"].values():
        for hook in tenant["webhooks"]:
            parts = urlsplit(hook["url"])
            hook["url"] = f"{parts.scheme}://{parts.hostname}/{_MASK}"
    for key in shown["keys"].values():
        if key["sha256"]:
            key["sha256"] = key["sha256"][:_DIGEST_SHOWN] + "…"
    return shown


def mask_address(url: str) -> str:
    """``url`` without user, password and the values of its query."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    netloc = f"{_MASK}@{host}" if at and user else host
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    query = "&".join(f"{name}={_MASK}" for name in names)
    return urlunsplit((parts.scheme, netloc, parts.path, query, ""))
