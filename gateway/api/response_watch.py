"""A stored response as a stream: what is known of it now, and the rest as it comes."""

import asyncio
import time
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse

from gateway.api.errors import members_of
from gateway.api.relay import HEARTBEAT
from gateway.core.errors import HeadwayError
from gateway.jobs.responses import ResponseService
from gateway.responses.events import ENDED, Numbered, encoded, error_event
from gateway.responses.replay import Replay
from gateway.tenancy.keys import Caller

_LOOKS = (0.1, 0.1, 0.2, 0.2, 0.4, 0.5, 1.0)
_KEEP_ALIVE = 15.0


def watched(
    service: ResponseService, caller: Caller, response_id: str, after: int = -1
) -> StreamingResponse:
    """The events numbered above ``after``. A fault on the way is one error event."""
    headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
    pieces = _pieces(service, caller, response_id, after)
    return StreamingResponse(pieces, headers=headers, media_type="text/event-stream")


async def _pieces(
    service: ResponseService, caller: Caller, response_id: str, after: int
) -> AsyncIterator[bytes]:
    replay = Replay()
    looks = iter(_LOOKS)
    written = time.monotonic()
    while True:
        try:
            response = await service.get(caller, response_id)
        except HeadwayError as error:
            told = members_of(error)
            yield encoded([error_event(Numbered(), told)])
            return
        status = response["status"]
        if status in ENDED:
            events = replay.ended(response)
        elif status == "in_progress":
            events = replay.running(response)
        else:
            events = replay.waiting(response)
        shown = encoded([event for event in events if event["sequence_number"] > after])
        if not shown and time.monotonic() - written >= _KEEP_ALIVE:
            shown = HEARTBEAT
        if shown:
            written = time.monotonic()
            yield shown
        if status in ENDED:
            return
        await asyncio.sleep(next(looks, _LOOKS[-1]))
