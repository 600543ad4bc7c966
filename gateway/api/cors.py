"""Cross-origin calls of browsers, from the origins that the policy lists."""

from collections.abc import Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.api.errors import RawHeaders

_ANY = b"*"
_METHODS = b"GET, POST, DELETE"
_SECONDS = b"600"
#: Headers of answers that a page may read besides those it always may.
_EXPOSED = b", ".join(
    [
        b"openai-processing-ms",
        b"retry-after",
        b"retry-after-ms",
        b"x-headway-attempts",
        b"x-headway-class",
        b"x-headway-class-reason",
        b"x-headway-fallback-from",
        b"x-headway-served-model",
        b"x-headway-target",
        b"x-request-id",
        b"x-should-retry",
    ]
)


class Cors:
    """Tells browsers that pages of ``origins`` may call; ``*`` is any. Cookies never are allowed.

    A page of another origin gets its answer without a word of permission. Stands outside of
    authentication: a preflight has no key, and pages shall read our errors.
    """

    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        self._app = app
        self._origins = frozenset(origin.encode() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        headers = dict(scope["headers"]) if scope["type"] == "http" else {}
        permission = self._permission(headers.get(b"origin"))
        if not permission:
            await self._app(scope, receive, send)
        elif scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
            await _preflight([*permission, *_may(headers)], send)
        else:
            permission.append((b"access-control-expose-headers", _EXPOSED))

            async def send_permitted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    message["headers"] = [*message.get("headers", ()), *permission]
                await send(message)

            await self._app(scope, receive, send_permitted)

    def _permission(self, origin: bytes | None) -> RawHeaders:
        """Headers for a page of ``origin``; none when it is not listed."""
        if origin is None:
            return []
        if _ANY in self._origins:
            return [(b"access-control-allow-origin", _ANY)]
        if origin not in self._origins:
            return []
        return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]


def _may(headers: dict[bytes, bytes]) -> RawHeaders:
    allowed = [(b"access-control-allow-methods", _METHODS), (b"access-control-max-age", _SECONDS)]
    asked = headers.get(b"access-control-request-headers")
    if asked:
        allowed.append((b"access-control-allow-headers", asked))
    return allowed


async def _preflight(headers: RawHeaders, send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
