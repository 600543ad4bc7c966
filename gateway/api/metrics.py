"""``GET /metrics``: the counters of this process, for Prometheus. Needs a key like all else."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_FORMAT = "text/plain; version=0.0.4; charset=utf-8"


def metrics_route(text: Callable[[], str]) -> Route:
    """The route; ``text`` gives the page."""

    async def show(_: Request) -> Response:
        return Response(text(), media_type=_FORMAT)

    return Route("/metrics", show)
