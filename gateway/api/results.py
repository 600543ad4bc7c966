"""Results of a batch while it runs: GET /v1/batches/{batch_id}/results."""

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from gateway.api.files import caller_of
from gateway.batches.results import ResultReader
from gateway.schemas.results import parse_results

_MEDIA_TYPE = "application/x-ndjson"


def results_route(reader: ResultReader) -> Route:
    """The route. A HEAD gets the head of an answer."""

    async def results(request: Request) -> Response:
        wanted = parse_results(request.query_params)
        tenant = caller_of(request).tenant
        lines = await reader.open(tenant, request.path_params["batch_id"], wanted)
        if request.method == "HEAD":
            return Response(media_type=_MEDIA_TYPE)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(lines, headers=headers, media_type=_MEDIA_TYPE)

    return Route("/v1/batches/{batch_id}/results", results, methods=["GET"])
