"""What a target is to the rest of the product: a place to send one call to, and its answer."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

from gateway.core.rates import RateLimits
from gateway.core.targets import UpstreamCall


class Reply(Protocol):
    """A successful answer whose body is still on its way. Whoever got it must close it."""

    status: int

    @property
    def body(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The head's lines by their lower-case names."""

    @property
    def rates(self) -> RateLimits | None:
        """The limits that the answer tells of."""

    def offer_to(self, taker: Callable[[bytes], bool]) -> None:
        """Offer pieces to ``taker`` as they come; those it does not take are iterated as before."""

    async def read(self) -> bytes:
        """The whole body. Raises as iterating ``body`` does."""

    async def finish(self) -> None:
        """As ``aclose``, after what has to be read of the body was read: keeps the connection."""

    async def aclose(self) -> None:
        """Give the connection back, or close it when the answer has not ended. Never raises."""


class Target(Protocol):
    """One model server or provider."""

    name: str

    async def send(self, call: UpstreamCall) -> Reply:
        """Make one attempt; returns at the head of a 2xx answer, raises UpstreamError otherwise.

        The body raises UpstreamTimeout when a limit is reached and StreamInterrupted when the
        connection ends early. Cancelling closes the connection.
        """

    async def aclose(self) -> None:
        """Close every connection."""
