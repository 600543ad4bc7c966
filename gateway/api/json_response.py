"""JSON answers, all written by one library."""

from typing import Any

from starlette.responses import Response

from gateway.core.exact_json import dumps


class JsonResponse(Response):
    """An answer whose body is its content as JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The body."""
        return dumps(content)
