"""Whether the process lives, and whether it can serve."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.api.json_response import JsonResponse

OPEN_PATHS = frozenset({"/livez", "/readyz"})


@dataclass(frozen=True, slots=True)
class Probe:
    """One thing to look at. ``check`` answers quickly and never raises.

    Without a ``required`` one no interactive call can be served; without another the process
    works on, degraded.
    """

    name: str
    check: Callable[[], Awaitable[bool]]
    required: bool = False


class Health:
    """``/livez`` and ``/readyz``; the only routes that need no key.

    ``troubles`` tells of targets that are not as they should be, by name, in words.
    """

    def __init__(
        self, probes: Sequence[Probe] = (), troubles: Callable[[], Mapping[str, str]] = dict
    ) -> None:
        self._probes = tuple(probes)
        self._troubles = troubles

    def routes(self) -> list[Route]:
        """The routes."""
        return [Route("/livez", self.live), Route("/readyz", self.ready)]

    async def live(self, request: Request) -> Response:
        """200 as long as the event loop turns."""
        del request
        return JsonResponse({"status": "ok"}, 200)

    async def ready(self, request: Request) -> Response:
        """200 while interactive calls can be served, else 503; the body tells what is amiss."""
        del request
        found = [(probe, await probe.check()) for probe in self._probes]
        told = {"targets": troubles} if (troubles := self._troubles()) else {}
        checks = {probe.name: "ok" if good else "failing" for probe, good in found}
        if not all(good for probe, good in found if probe.required):
            return JsonResponse({"status": "unavailable", "checks": checks, **told}, 503)
        status = "ok" if all(good for _, good in found) and not told else "degraded"
        return JsonResponse({"status": status, "checks": checks, **told}, 200)
