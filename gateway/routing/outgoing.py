"""The body that a target gets: the client's members, less what would steer us or the target."""

from collections.abc import Mapping
from typing import Any

from gateway.core.exact_json import dumps
from gateway.core.large_json import LARGE, write_large
from gateway.routing.rank import with_rank
from gateway.routing.route import Route

#: Members that name a target, carry a credential or set a rank: never passed on from a client.
DENIED = frozenset(
    {
        "api_base",
        "api_key",
        "base_url",
        "custom_llm_provider",
        "extra_headers",
        "headers",
        "priority",
    }
)
#: Members in which clients wrap others, and what is taken out there. A label of the client's may be
#: called ``priority``: it sets no rank.
_WRAPPED = {"extra_body": DENIED, "metadata": DENIED - {"priority"}}


def without_denied(members: Mapping[str, Any]) -> dict[str, Any]:
    """``members`` less the denied ones, at the top and in ``extra_body`` and ``metadata``."""
    kept = dict(members)
    if not DENIED.isdisjoint(kept):
        kept = {name: value for name, value in members.items() if name not in DENIED}
    for name, denied in _WRAPPED.items():
        inner = kept.get(name)
        if isinstance(inner, dict) and not denied.isdisjoint(inner):
            kept[name] = {key: value for key, value in inner.items() if key not in denied}
    return kept


def outgoing_body(
    members: Mapping[str, Any],
    route: Route,
    *,
    stream: bool,
    tier: str | None = None,
    size: int = 0,
) -> bytes:
    """The body for ``route``; ``size`` is about how long it will be, if it may be large.

    The model is the name that the target knows; a streamed answer is asked for its usage wherever
    the target takes that; ``tier`` replaces the client's ``service_tier`` for providers that bill
    by it and is left out for all others.
    """
    body = without_denied(members)
    body["model"] = route.served_model
    with_rank(body, route.rank)
    if stream:
        options = body.pop("stream_options", None)
        body["stream"] = True
        if route.asks_usage:
            known = options if isinstance(options, dict) else {}
            body["stream_options"] = {**known, "include_usage": True}
    if tier is not None and route.kind == "openai":
        body["service_tier"] = tier
    else:
        body.pop("service_tier", None)
    return dumps(body) if size <= LARGE else write_large(body, size)
