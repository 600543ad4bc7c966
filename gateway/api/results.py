"""Results of a batch while it runs: GET /v1/batches/{batch_id}/results."""

import logging

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Send

from gateway.api.auth import caller_of
from gateway.batches.results import ResultReader
from gateway.core.errors import HeadwayError
from gateway.schemas.results import parse_results

_MEDIA_TYPE = "application/x-ndjson"
_log = logging.getLogger(__name__)


class Lines(StreamingResponse):
    """Lines to their end. When that cannot be reached the connection is closed without one."""

    async def stream_response(self, send: Send) -> None:
        """Send all lines."""
        try:
            await super().stream_response(send)
        except HeadwayError as error:
            _log.info("results break off: %s", error.message)


def results_route(reader: ResultReader) -> Route:
    """The route. A HEAD gets the head of an answer."""

    async def results(request: Request) -> Response:
        wanted = parse_results(request.query_params)
        tenant = caller_of(request).tenant
        lines = await reader.open(tenant, request.path_params["batch_id"], wanted)
        if request.method == "HEAD":
            return Response(media_type=_MEDIA_TYPE)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return Lines(lines, headers=headers, media_type=_MEDIA_TYPE)

    return Route("/v1/batches/{batch_id}/results", results, methods=["GET"])
