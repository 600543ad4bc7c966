"""What pydantic found wrong, in words that help: path, reason, nearest known name."""

import difflib
from collections.abc import Mapping
from types import UnionType
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from gateway.policy.model import Policy
from gateway.policy.tree import Place
from gateway.policy.values import seconds
from gateway.policy.words import duration_reason, reason

# Names that were renamed here, or that the same thing has elsewhere → ours.
RENAMED: Mapping[str, str] = {
    "alias": "aliases",
    "api_base": "base_url",
    "backends": "targets",
    "concurrency": "max_in_flight",
    "endpoint": "base_url",
    "fallbacks": "fallback",
    "health_check": "health",
    "max_concurrency": "max_in_flight",
    "max_retries": "attempts",
    "model": "models",
    "model_list": "targets",
    "queue_size": "max_queue",
    "queue_timeout": "max_wait",
    "rate_limits": "limits",
    "requests_per_min": "requests_per_minute",
    "retries": "attempts",
    "rpm": "requests_per_minute",
    "token": "api_key",
    "tokens_per_min": "tokens_per_minute",
    "tpm": "tokens_per_minute",
    "upstreams": "targets",
    "url": "base_url",
}


def explain(error: ErrorDetails) -> tuple[Place, str]:
    """Where the fault is and what it is. The value itself is never repeated: it may be a secret."""
    place: Place = tuple(step for step in error["loc"] if step != "[key]")
    if error["type"] == "extra_forbidden":
        return place, f"unknown key{_nearest(str(place[-1]), _known(place[:-1]))}"
    if error["type"] == "missing":
        return place[:-1], f"{place[-1]} is missing"
    if error["type"] == "too_short":
        return place, "must not be empty"
    if _is_duration(place):
        return place, duration_reason(error["type"], error.get("ctx", {}))
    if said := reason(error["type"], error.get("ctx", {}), _known(place)):
        return place, said
    other = error["msg"].removeprefix("Value error, ")
    return place, other[:1].lower() + other[1:]


def _nearest(name: str, known: list[str]) -> str:
    others = {old: new for old, new in RENAMED.items() if new in known}
    if name in others:
        return f"; it is called {others[name]!r} here"
    close = difflib.get_close_matches(name, [*known, *others], n=1, cutoff=0.5)
    if close:
        return f"; did you mean {others.get(close[0], close[0])!r}?"
    return f"; known are {', '.join(known)}"


def _known(place: Place) -> list[str]:
    model = _type_at(place)
    return list(model.model_fields) if _is_model(model) else []


def _is_duration(place: Place) -> bool:
    field = _field_at(place)
    if field is None:
        return False
    # One that may be left out has it a step further in.
    inner = [item for kind in get_args(field.annotation) for item in get_args(kind)]
    return any(getattr(item, "func", None) is seconds for item in [*field.metadata, *inner])


def _field_at(place: Place) -> FieldInfo | None:
    model = _type_at(place[:-1])
    if not place or not _is_model(model):
        return None
    field: FieldInfo | None = model.model_fields.get(str(place[-1]))
    return field


def _type_at(place: Place) -> Any:
    """The type that the policy has at ``place``; None where it has none."""
    current: Any = Policy
    for step in place:
        current = _given(current)
        if _is_model(current):
            field = current.model_fields.get(str(step))
            current = None if field is None else field.annotation
        elif get_origin(current) is dict:
            current = get_args(current)[1]
        elif get_origin(current) is tuple:
            current = get_args(current)[0]
        else:
            return None
    return _given(current)


def _given(kind: Any) -> Any:
    """A model that may be left out: the model."""
    models = [one for one in get_args(kind) if _is_model(one)]
    return models[0] if isinstance(kind, UnionType) and models else kind


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
