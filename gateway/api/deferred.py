"""``Prefer: respond-async`` on an inference endpoint (RFC 7240): the call becomes a job."""

from collections.abc import Sequence

from starlette.types import Receive, Scope, Send

from gateway.api.auth import CALLER
from gateway.api.json_response import JsonResponse
from gateway.jobs.service import JobService
from gateway.schemas.job import deferred_call
from gateway.schemas.requests import ModelRequest
from gateway.store.job_record import JobRecord

PREFERENCE = "respond-async"
_HEADER = b"prefer"
_ACCEPTED = 202


def prefers_async(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether the sender prefers an asynchronous answer; ``wait=N`` may stand beside it."""
    return any(
        item.partition(b";")[0].strip().lower() == PREFERENCE.encode()
        for name, value in headers
        if name == _HEADER
        for item in value.split(b",")
    )


class Deferred:
    """Takes calls to be answered later."""

    def __init__(self, jobs: JobService) -> None:
        self._jobs = jobs

    async def accept(
        self, endpoint: str, request: ModelRequest, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Make a job of the call. Raises what the call itself would be refused with."""
        wanted = deferred_call(endpoint, request)
        key = dict(scope["headers"]).get(b"idempotency-key")
        text = None if key is None else key.decode("latin-1")
        record = await self._jobs.create(scope[CALLER], wanted, text)
        answer = accepted(record)
        answer.headers["preference-applied"] = PREFERENCE
        await answer(scope, receive, send)


def accepted(record: JobRecord) -> JsonResponse:
    """202 with the job and where it is."""
    headers = {"location": f"/v1/jobs/{record.id}"}
    return JsonResponse(record.to_openai(), _ACCEPTED, headers)
