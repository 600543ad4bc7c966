"""What passes a target's stream on to a client, whatever the API of the two."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from gateway.core.errors import UpstreamError
from gateway.core.usage import Usage
from gateway.core.values import value
from gateway.metering.record import CallTiming
from gateway.providers.base import Reply
from gateway.providers.sse import BOM

#: The comment that shows a client that its stream is alive.
HEARTBEAT = b": keep-alive\n\n"
#: What no line of events begins with, and every plain answer.
_PLAIN = frozenset({b"{", b"["})


class ShortWay(Protocol):
    """For pieces that may pass as they are."""

    def plain(self, piece: bytes) -> Sequence[int]:
        """Bytes of each text of a piece that may pass as it is; none: it is to be taken."""

    def passed(self, texts: Sequence[int], now: float) -> None:
        """A plain piece was passed on."""


class Relay(Protocol):
    """Takes pieces as they come, gives back what the client shall see.

    ``committed`` says that content has come, ``done`` that nothing of the answer is missing,
    ``unshown`` holds what came in one piece with the event that failed, and before it.
    """

    committed: bool
    done: bool
    unshown: bytes

    @property
    def usage(self) -> Usage:
        """Tokens so far."""

    @property
    def timing(self) -> CallTiming:
        """Time to the first content and the gaps so far."""

    @property
    def short_way(self) -> ShortWay | None:
        """None: every event must be looked into."""

    def is_large(self, piece: bytes) -> bool:
        """Whether what ``piece`` may complete is better taken beside the event loop."""

    def take(self, piece: bytes, now: float) -> bytes:
        """What to pass on of ``piece``. Raises UpstreamError."""

    def end(self, now: float) -> bytes:
        """The rest when the body has ended. Raises StreamInterrupted when it ended too early."""


@value
class Shown:
    """What a stream begins with; ``failure`` came in one piece with its content, behind it."""

    data: bytes
    failure: UpstreamError | None = None


async def take(relay: Relay, piece: bytes, now: Callable[[], float]) -> bytes:
    """``relay.take``; what may be a large event is taken in a thread."""
    if relay.is_large(piece):
        return await asyncio.to_thread(relay.take, piece, now())
    return relay.take(piece, now())


async def end(relay: Relay, now: Callable[[], float]) -> bytes:
    """``relay.end``; what is left of a large event is taken in a thread."""
    if relay.is_large(b""):
        return await asyncio.to_thread(relay.end, now())
    return relay.end(now())


async def first_shown(
    relay: Relay,
    reply: Reply,
    now: Callable[[], float],
    whole: Callable[[bytes], Awaitable[bytes]],
    *,
    content: bool,
) -> Shown:
    """Read until there is something to show: content, or with ``content`` false any event.

    ``whole`` makes events of an answer that is no stream, which begins with what it gets. A failure
    before any content is raised.
    """
    shown: list[bytes] = []
    blank = True
    async for piece in reply.body:
        start = piece.removeprefix(BOM).lstrip()[:1] if blank else b""
        taken = await whole(piece) if start in _PLAIN else piece
        blank = blank and not start
        try:
            data = await take(relay, taken, now)
        except UpstreamError as error:
            if not relay.committed:
                raise
            data, relay.unshown = relay.unshown, b""
            return Shown(b"".join([*shown, data]), error)
        if data and data != HEARTBEAT:
            shown.append(data)
        if relay.committed or relay.done or (shown and not content):
            return Shown(b"".join(shown))
    return Shown(b"".join([*shown, await end(relay, now)]))
