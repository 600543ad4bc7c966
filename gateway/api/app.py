"""The application: its routes and its middleware, each in one visible list."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.api.auth import Auth, Keys
from gateway.api.body import BodyLimits
from gateway.api.calls import CallParts
from gateway.api.chat import chat_completions
from gateway.api.completions import completions
from gateway.api.cors import Cors
from gateway.api.embeddings import embeddings
from gateway.api.health import OPEN_PATHS, Health, Probe
from gateway.api.middleware import Errors, RequestId
from gateway.api.models import Models
from gateway.core.endpoints import below_prefix
from gateway.core.errors import NotFound


@dataclass(frozen=True, slots=True)
class AppParts:
    """What the application is made of.

    ``routes`` are further ones, such as those of files and batches; pages of ``origins`` may call.
    """

    calls: CallParts
    keys: Keys
    limits: BodyLimits
    probes: Sequence[Probe] = ()
    routes: Sequence[Route] = field(default=())
    origins: Sequence[str] = ()


def build_app(parts: AppParts) -> ASGIApp:
    """The gateway's ASGI application."""
    calls, limits = parts.calls, parts.limits
    hot = [
        chat_completions(calls, limits),
        completions(calls, limits),
        embeddings(calls, limits),
    ]
    models = Models(calls.router.models, int(calls.clock.now()))
    rest = [
        *models.routes(),
        *parts.routes,
    ]
    router = Router(
        [*Health(parts.probes, calls.router.troubles).routes(), *_with_and_without_prefix(rest)],
        redirect_slashes=False,
        default=_not_found,
    )
    app: ASGIApp = HotPaths({path: e for e in hot for path in _both(e.path)}, router)
    app = Auth(app, parts.keys, OPEN_PATHS)
    app = Errors(app)
    if parts.origins:
        app = Cors(app, parts.origins)
    return RequestId(app)


class HotPaths:
    """Finds the endpoints that matter by one look in a table; everything else is the router's."""

    def __init__(self, endpoints: Mapping[str, ASGIApp], router: Router) -> None:
        self._endpoints = endpoints
        self._router = router

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request."""
        endpoint = self._endpoints.get(scope["path"]) if scope["type"] == "http" else None
        if endpoint is None:
            scope["app"] = self  # has the router raise for a wrong method instead of answering
            return self._router(scope, receive, send)
        if scope["method"] == "POST":
            return endpoint(scope, receive, send)
        raise HTTPException(405, headers={"Allow": "POST"})


def _both(path: str) -> tuple[str, str]:
    return path, below_prefix(path)


def _with_and_without_prefix(routes: Sequence[Route]) -> list[Route]:
    """``routes``, and each once more for clients whose base URL lacks ``/v1``."""
    short = [
        Route(below_prefix(route.path), route.endpoint, methods=sorted(route.methods or ()))
        for route in routes
    ]
    return [*routes, *short]


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    del receive, send
    if scope["type"] == "websocket":
        raise HTTPException(404)
    raise NotFound(f"Unknown request URL: {scope['method']} {scope['path']}.", code="unknown_url")
