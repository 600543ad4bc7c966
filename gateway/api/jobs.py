"""The Jobs API: /v1/jobs, one call of an inference endpoint that runs later."""

from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.api.auth import caller_of
from gateway.api.body import BodyLimits, parsed, read_body
from gateway.api.deferred import accepted
from gateway.api.errors import refusal
from gateway.api.json_response import JsonResponse
from gateway.core.clock import Clock
from gateway.jobs.service import JobService
from gateway.schemas.deleted import deleted_object
from gateway.schemas.job import parse_job_create
from gateway.schemas.lists import list_object, parse_page

_CONFLICT = 409
_FIRST_ERROR = 400


def job_routes(service: JobService, clock: Clock, limits: BodyLimits) -> list[Route]:
    """The routes; paths start with ``/v1/jobs``."""
    api = JobsApi(service, clock, limits)
    return [
        Route("/v1/jobs", api.create, methods=["POST"]),
        Route("/v1/jobs", api.list, methods=["GET"]),
        Route("/v1/jobs/{job_id}", api.retrieve, methods=["GET"]),
        Route("/v1/jobs/{job_id}", api.delete, methods=["DELETE"]),
        Route("/v1/jobs/{job_id}/result", api.result, methods=["GET"]),
        Route("/v1/jobs/{job_id}/cancel", api.cancel, methods=["POST"]),
    ]


class JobsApi:
    """Handlers."""

    def __init__(self, service: JobService, clock: Clock, limits: BodyLimits) -> None:
        self._service = service
        self._clock = clock
        self._limits = limits

    async def create(self, request: Request) -> Response:
        """POST /v1/jobs: 202 with Location."""
        body = await read_body(request.scope, request.receive, self._limits.size)
        wanted = await parsed(
            partial(parse_job_create, now=self._clock.now()), body, self._limits.parts
        )
        key = request.headers.get("idempotency-key")
        return accepted(await self._service.create(caller_of(request), wanted, key))

    async def retrieve(self, request: Request) -> Response:
        """GET /v1/jobs/{job_id}."""
        record = await self._service.get(caller_of(request), request.path_params["job_id"])
        return JsonResponse(record.to_openai())

    async def result(self, request: Request) -> Response:
        """GET /v1/jobs/{job_id}/result: status and body as the call itself would have got them.

        While there is none, 409 that may be tried again; for a job that was cancelled or expired,
        409 that may not.
        """
        result = await self._service.result(caller_of(request), request.path_params["job_id"])
        if result is None:
            return _not_finished()
        answer = Response(result.body, result.status, media_type="application/json")
        if result.status >= _FIRST_ERROR:
            answer.headers["x-should-retry"] = "false"
        return answer

    async def cancel(self, request: Request) -> Response:
        """POST /v1/jobs/{job_id}/cancel."""
        record = await self._service.cancel(caller_of(request), request.path_params["job_id"])
        return JsonResponse(record.to_openai())

    async def delete(self, request: Request) -> Response:
        """DELETE /v1/jobs/{job_id}: one that has ended."""
        job_id = request.path_params["job_id"]
        await self._service.delete(caller_of(request), job_id)
        return JsonResponse(deleted_object("job", job_id))

    async def list(self, request: Request) -> Response:
        """GET /v1/jobs, newest first."""
        page = parse_page(request.query_params, prefix="job_")
        records, has_more = await self._service.page(caller_of(request), page)
        return JsonResponse(list_object([r.to_openai() for r in records], has_more=has_more))


def _not_finished() -> Response:
    message = "The job has not finished: ask again later."
    headers = {"retry-after": "1", "x-should-retry": "true"}
    body = refusal(message, "job_not_finished")
    return Response(body, _CONFLICT, headers, media_type="application/json")
