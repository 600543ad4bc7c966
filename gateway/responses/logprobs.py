"""Log probabilities of chat completions as those of a response."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def in_delta(entry: Mapping[str, Any]) -> Json:
    """As an event has them: without bytes."""
    top = [_bare(other) for other in entry.get("top_logprobs") or ()]
    return {**_bare(entry), "top_logprobs": top}


def in_part(entry: Mapping[str, Any]) -> Json:
    """As a part of the output has them."""
    top = [_full(other) for other in entry.get("top_logprobs") or ()]
    return {**_full(entry), "top_logprobs": top}


def _bare(entry: Mapping[str, Any]) -> Json:
    return {"token": entry.get("token"), "logprob": entry.get("logprob")}


def _full(entry: Mapping[str, Any]) -> Json:
    return {**_bare(entry), "bytes": entry.get("bytes") or []}
