"""JSON answers, all written by one library."""

from typing import Any

import orjson
from starlette.responses import Response


class JsonResponse(Response):
    """An answer whose body is its content as JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The body."""
        return orjson.dumps(content)
