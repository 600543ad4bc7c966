"""Turning calls away."""

import pytest
from starlette.types import Receive, Scope, Send

from gateway.api.drain import Drain, DrainFlag
from gateway.core.errors import Draining


async def test_only_after_the_flag() -> None:
    """Calls pass until the flag is set; open paths and other protocols pass always."""
    passed: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        passed.append(scope.get("path", scope["type"]))

    flag = DrainFlag()
    drain = Drain(app, flag, frozenset({"/livez"}))

    async def nothing(*_: object) -> dict[str, object]:
        return {}

    async def call(scope: Scope) -> None:
        await drain(scope, nothing, nothing)  # type: ignore[arg-type]

    await call({"type": "http", "path": "/v1"})
    flag.drain()
    with pytest.raises(Draining):
        await call({"type": "http", "path": "/v1"})
    await call({"type": "http", "path": "/livez"})
    await call({"type": "lifespan"})
    assert passed == ["/v1", "/livez", "lifespan"]
