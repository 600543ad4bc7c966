"""One scale of priority inside, and how each kind of engine is told.

Inside a lower rank is sooner. vLLM and our worker read it as it is, SGLang the other way round
unless told otherwise, Dynamo in its own member, where higher is sooner; an inference gateway takes
the name of an objective in a header. Engines that are not known to rank are told nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway.core.lanes import Lane
from gateway.policy.target import TargetPolicy

RANKS: Final = {Lane.INTERACTIVE: 0, Lane.ELASTIC: 10, Lane.BATCH: 100}
_LOWEST: Final = 100
_OBJECTIVE: Final = "x-gateway-inference-objective"


def rank_members(target: TargetPolicy, lane: Lane) -> Mapping[str, Any]:
    """The members of a body that carry the rank of ``lane`` at ``target``."""
    rank = RANKS[lane]
    scale = target.rank_scale
    if scale is None:
        return {}
    if scale == "lower":
        return {"priority": rank}
    if scale == "higher":
        return {"priority": _LOWEST - rank}
    return {"nvext": {"agent_hints": {"priority": _LOWEST - rank}}}


def rank_head(target: TargetPolicy, lane: Lane) -> bytes:
    """The header line that names the objective of ``lane``, or nothing."""
    name = target.objectives.get(lane)
    return f"{_OBJECTIVE}: {name}\r\n".encode() if name else b""


def with_rank(body: dict[str, Any], rank: Mapping[str, Any]) -> None:
    """Put ``rank`` into ``body``; other members of a client's ``nvext`` stay."""
    for name, value in rank.items():
        own = body.get(name)
        if isinstance(own, dict) and isinstance(value, dict):
            body[name] = merged = dict(own)
            with_rank(merged, value)
        else:
            body[name] = value
