"""The Batches API: /v1/batches."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.api.auth import caller_of
from gateway.api.body import read_body
from gateway.api.json_response import JsonResponse
from gateway.batches.service import BatchService
from gateway.core.settings import Settings
from gateway.schemas.batch import parse_batch_create
from gateway.schemas.lists import list_object, parse_page

_LARGEST_BODY = 2**20


def batch_routes(service: BatchService, settings: Settings) -> list[Route]:
    """The routes; paths start with ``/v1/batches``."""
    api = BatchesApi(service, settings.min_window_seconds)
    return [
        Route("/v1/batches", api.create, methods=["POST"]),
        Route("/v1/batches", api.list, methods=["GET"]),
        Route("/v1/batches/{batch_id}", api.retrieve, methods=["GET"]),
        Route("/v1/batches/{batch_id}/cancel", api.cancel, methods=["POST"]),
    ]


class BatchesApi:
    """Handlers. ``min_window`` is the shortest completion window, in seconds."""

    def __init__(self, service: BatchService, min_window: float) -> None:
        self._service = service
        self._min_window = min_window

    async def create(self, request: Request) -> Response:
        """POST /v1/batches."""
        body = await read_body(request.scope, request.receive, _LARGEST_BODY)
        wanted = parse_batch_create(body, self._min_window)
        key = request.headers.get("idempotency-key")
        record = await self._service.create(caller_of(request), wanted, key)
        return JsonResponse(record.to_openai())

    async def list(self, request: Request) -> Response:
        """GET /v1/batches, newest first."""
        page = parse_page(request.query_params, prefix="batch_")
        records, has_more = await self._service.page(caller_of(request), page)
        return JsonResponse(list_object([r.to_openai() for r in records], has_more=has_more))

    async def retrieve(self, request: Request) -> Response:
        """GET /v1/batches/{batch_id}."""
        record = await self._service.get(caller_of(request), request.path_params["batch_id"])
        return JsonResponse(record.to_openai())

    async def cancel(self, request: Request) -> Response:
        """POST /v1/batches/{batch_id}/cancel."""
        record = await self._service.cancel(caller_of(request), request.path_params["batch_id"])
        return JsonResponse(record.to_openai())
