"""The objects of ``GET /v1/models``."""

from collections.abc import Iterable
from typing import Any

OWNER = "headway"


def model_object(name: str, created: int) -> dict[str, Any]:
    """One model; ``created`` is Unix seconds."""
    return {"id": name, "object": "model", "created": created, "owned_by": OWNER}


def model_list(names: Iterable[str], created: int) -> dict[str, Any]:
    """All models, in one page."""
    return {"object": "list", "data": [model_object(name, created) for name in names]}
