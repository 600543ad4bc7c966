"""The answer to a delete."""

from typing import Any


def deleted_object(kind: str, object_id: str) -> dict[str, Any]:
    """``kind`` is what the object was, such as ``file``."""
    return {"id": object_id, "object": kind, "deleted": True}
