"""Who is calling. Every path but the health checks is closed to those without a key."""

import logging
from collections.abc import Awaitable
from typing import Protocol

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.core.errors import AuthenticationFailed
from gateway.tenancy.keys import Caller

CALLER = "headway.caller"
_SCHEME = b"bearer"
_log = logging.getLogger(__name__)


class Keys(Protocol):
    """Where keys are looked up."""

    def find(self, token: str) -> Caller | None:
        """The owner of ``token``; None: deny."""


class Auth:
    """Puts the caller into the scope; raises AuthenticationFailed. ``open_paths`` need no key."""

    def __init__(self, app: ASGIApp, keys: Keys, open_paths: frozenset[str]) -> None:
        self._app = app
        self._keys = keys
        self._open = open_paths

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Find the caller, then serve."""
        if scope["type"] == "http" and scope["path"] not in self._open:
            scope[CALLER] = self._caller(scope)
        return self._app(scope, receive, send)

    def _caller(self, scope: Scope) -> Caller:
        token = _bearer(scope)
        if not token:
            raise AuthenticationFailed(
                "You didn't provide an API key. Send it in the Authorization header: "
                "'Authorization: Bearer YOUR_KEY'."
            )
        caller = self._keys.find(token)
        if caller is None:
            _log.debug("a key of %s is not known", (scope.get("client") or ("?",))[0])
            raise AuthenticationFailed("Incorrect API key provided.", code="invalid_api_key")
        return caller


def caller_of(request: Request) -> Caller:
    """Who makes ``request``, as the authentication found."""
    caller: Caller = request.scope[CALLER]
    return caller


def _bearer(scope: Scope) -> str:
    """The token of the one Authorization header; empty when there is none or it is another."""
    found = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(found) != 1:
        return ""
    scheme, _, token = found[0].partition(b" ")
    return token.strip().decode("latin-1") if scheme.lower() == _SCHEME else ""
