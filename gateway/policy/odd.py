"""What fits its member and cannot be meant: numbers without end, and two members at odds."""

import math
from collections.abc import Iterator
from typing import Any

from gateway.policy.model import Policy
from gateway.policy.target import EnginePolicy, TargetPolicy
from gateway.policy.tree import Place

Fault = tuple[Place, str]

# What is counted here fits, and so do its sums, in Redis and in JSON.
_MOST = 10**12


def odd_numbers(values: Any, place: Place = ()) -> Iterator[Fault]:
    """Numbers without an end, and such as are beyond what anything here counts."""
    if isinstance(values, dict):
        for name, value in values.items():
            yield from odd_numbers(value, (*place, name))
    elif isinstance(values, list):
        for number, value in enumerate(values):
            yield from odd_numbers(value, (*place, number))
    elif isinstance(values, float) and not math.isfinite(values):
        yield place, "must be a number with an end"
    elif isinstance(values, int | float) and abs(values) > _MOST:
        yield place, "must be at most 10^12"


def at_odds(policy: Policy) -> Iterator[Fault]:
    """Members of a target that cannot hold together."""
    for name, target in policy.targets.items():
        yield from _rows(("targets", name, "lanes", "batch"), target)
        yield from _flags(("targets", name, "engine"), target.engine)
        yield from _pauses(("targets", name), target)
        if target.kind == "local" and target.worker.reserved_rows >= target.worker.rows:
            rows = ("targets", name, "worker", "reserved_rows")
            yield rows, f"leaves none of {target.worker.rows} rows for offline work"
        if said := _scale(target):
            yield ("targets", name, "priority"), said


def _rows(place: Place, target: TargetPolicy) -> Iterator[Fault]:
    """Of ``batch: auto`` only what was said is held against it: defaults give way."""
    batch = target.lanes.batch
    said, most = batch.model_fields_set, batch.max_in_flight
    if not batch.auto or not most:
        return
    for name in ("floor", "start"):
        value = getattr(batch, name)
        if name in said and value > most:
            yield (*place, name), f"{value} is above max_in_flight, {most}"
    if {"floor", "start"} <= said and batch.start < batch.floor <= most:
        yield (*place, "start"), f"{batch.start} is below floor, {batch.floor}"


def _flags(place: Place, engine: EnginePolicy) -> Iterator[Fault]:
    """Flags with which no vLLM starts: a step has a token for each sequence at least."""
    seqs, tokens = engine.max_num_seqs, engine.max_num_batched_tokens
    if tokens >= seqs:
        return
    if "max_num_batched_tokens" in engine.model_fields_set:
        yield (*place, "max_num_batched_tokens"), f"{tokens} is below max_num_seqs, {seqs}"
    else:
        yield (*place, "max_num_seqs"), f"{seqs} is above max_num_batched_tokens, {tokens}"


def _pauses(place: Place, target: TargetPolicy) -> Iterator[Fault]:
    """Pauses that grow from one length to another, where both were said."""
    for member, first, last in (("retry", "base", "cap"), ("breaker", "pause", "longest")):
        model = getattr(target, member)
        if {first, last} <= model.model_fields_set and getattr(model, first) > getattr(model, last):
            yield (*place, member, first), f"is longer than {last}"


def _scale(target: TargetPolicy) -> str | None:
    """Why the engine does not read ranks as the policy says; None: as far as is known it does."""
    if target.priority and target.kind == "azure":
        return "is not available for kind: azure"
    if target.kind == "local" and target.priority in {"dynamo", "higher"}:
        return "for kind: local lower is sooner; leave it out"
    if target.kind == "vllm" and target.priority == "higher":
        return "for kind: vllm lower is sooner; give true"
    return None
