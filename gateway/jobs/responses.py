"""What a client can do with stored responses. A background one is made by a job."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from gateway.core.errors import Conflict, ContextLengthExceeded, InvalidRequest, NotFound
from gateway.core.exact_json import dumps, loads_exactly
from gateway.core.ids import new_id
from gateway.core.large_json import LARGE
from gateway.jobs.service import JobService
from gateway.responses.events import ENDED
from gateway.responses.shape import as_failed, new_response, owned
from gateway.schemas.job import JobStatus, deferred_response
from gateway.schemas.responses import ResponseRequest
from gateway.store.job_record import JobRecord
from gateway.store.responses import (
    ResponseStore,
    StoredResponse,
    id_of_job,
    response_not_found,
)
from gateway.tenancy.keys import Caller

Json = dict[str, Any]
_TIER = "flex"
_LONGEST_CHAIN = 1000
_ITEM_PREFIX = {"function_call": "fc", "function_call_output": "fco", "reasoning": "rs"}
_REFERENCE = "item_reference"
_DELETE_TRIES, _DELETE_PAUSE = 60, 0.05


class ResponseService:
    """Every call names who asks; responses of others are not there.

    A conversation has at most ``most_bytes``, as any request.
    """

    def __init__(self, store: ResponseStore, jobs: JobService, most_bytes: int) -> None:
        self._store = store
        self._jobs = jobs
        self._most_bytes = most_bytes

    async def conversation(self, caller: Caller, request: ResponseRequest) -> list[Json]:
        """All items that the model shall see: those before, oldest first, and the new ones.

        Raises NotFound when what the request goes on from is gone, InvalidRequest for a reference
        to an item that is not there and for a conversation that is too long.
        """
        history: list[list[Json]] = []
        previous = request.previous
        size = request.call.prompt_bytes
        while previous is not None:
            stored, response = await self._load(caller, previous, "previous_response_id")
            if response["status"] not in ENDED:
                raise InvalidRequest(
                    f"The response '{previous[:64]}' has not ended yet.",
                    param="previous_response_id",
                    code="response_not_finished",
                )
            history.append([*stored.input, *response["output"]])
            previous = stored.previous
            size += len(dumps(history[-1]))
            if size > self._most_bytes or len(history) > _LONGEST_CHAIN:
                raise ContextLengthExceeded(
                    "The conversation is too long to go on from.", param="previous_response_id"
                )
        before = [i for items in reversed(history) for i in items if i["type"] != _REFERENCE]
        return [*before, *_resolved(request.input, before)]

    async def make_room(self, request: ResponseRequest) -> None:
        """Raises StoreFull when a response to it could not be kept."""
        if request.store:
            await self._store.make_room(request.call.prompt_bytes)

    async def keep(self, caller: Caller, request: ResponseRequest, response: Json) -> None:
        """Store a response that was made. Raises StoreFull."""
        if request.call.prompt_bytes <= LARGE:
            items = _with_ids(request.input)
        else:
            items = await asyncio.to_thread(_with_ids, request.input)
        await self._store.put(StoredResponse(caller.tenant, response, items, request.previous))

    async def start(
        self, caller: Caller, request: ResponseRequest, idempotency_key: str | None
    ) -> Json:
        """Have a background response made; it is safe on disk when this returns.

        Raises as ``JobService.create`` does.
        """
        items = await self.conversation(caller, request)
        job = await self._jobs.create(caller, deferred_response(request, items), idempotency_key)
        response_id = id_of_job(job.id)
        with suppress(NotFound):  # it is there when the same key came before
            return await self.get(caller, response_id)
        response = new_response(
            response_id,
            job.facts.created_at,
            request.members,
            status="queued",
            tier=_TIER,
            background=True,
        )
        items = _with_ids(request.input)
        await self._store.put(
            StoredResponse(caller.tenant, response, items, request.previous, job.id)
        )
        return response

    async def get(self, caller: Caller, response_id: str) -> Json:
        """The response as it stands. Raises NotFound."""
        return (await self._load(caller, response_id))[1]

    async def items(self, caller: Caller, response_id: str) -> list[Json]:
        """The input items, oldest first. Raises NotFound."""
        return (await self._store.get(caller.tenant, response_id)).input

    async def cancel(self, caller: Caller, response_id: str) -> Json:
        """Cancel a background response; one that has ended stays as it is.

        Raises InvalidRequest for one that is not made in the background.
        """
        stored = await self._store.get(caller.tenant, response_id)
        if stored.job is None:
            raise InvalidRequest(
                "Only a response that was made with 'background' can be cancelled.",
                code="invalid_value",
            )
        with suppress(Conflict):
            await self._jobs.cancel(caller, stored.job)
        return await self.get(caller, response_id)

    async def delete(self, caller: Caller, response_id: str) -> None:
        """Forget a response; one that is still made is called off. Raises NotFound."""
        stored = await self._store.get(caller.tenant, response_id)
        if stored.job is not None:
            with suppress(NotFound):
                with suppress(Conflict):
                    await self._jobs.cancel(caller, stored.job)
                await self._delete_job(caller, stored.job)
        await self._store.delete(response_id)

    async def _delete_job(self, caller: Caller, job_id: str) -> None:
        """A job that is being ended this moment is waited for. Raises Conflict when it does not."""
        for _ in range(_DELETE_TRIES):
            with suppress(Conflict):
                await self._jobs.delete(caller, job_id)
                return
            await asyncio.sleep(_DELETE_PAUSE)
        await self._jobs.delete(caller, job_id)

    async def _load(
        self, caller: Caller, response_id: str, param: str = "response_id"
    ) -> tuple[StoredResponse, Json]:
        try:
            stored = await self._store.get(caller.tenant, response_id)
            return stored, await self._made(caller, stored)
        except NotFound:
            error = response_not_found(response_id)
            error.param = param
            if param != "response_id":
                error.code = "previous_response_not_found"
            raise error from None

    async def _made(self, caller: Caller, stored: StoredResponse) -> Json:
        """What has become of it: its job knows."""
        if stored.job is None:
            return stored.response
        job = await self._jobs.get(caller, stored.job)
        end = job.end
        if end is None:
            status = "in_progress" if job.running else "queued"
            return {**stored.response, "status": status}
        if end.status is JobStatus.CANCELLED:
            return {**stored.response, "status": "cancelled"}
        if end.status is not JobStatus.COMPLETED:
            error = end.error or {}
            code = str(error.get("code") or "server_error")
            return as_failed(stored.response, code, str(error.get("message")))
        return await self._answer(caller, stored.response, job, end.at)

    async def _answer(self, caller: Caller, ours: Json, job: JobRecord, ended_at: int) -> Json:
        result = await self._jobs.result(caller, job.id)
        assert result is not None, "a completed job has a result"
        response = owned(loads_exactly(result.body), {**ours, "completed_at": ended_at})
        if response["status"] == "completed":
            response["completed_at"] = ended_at
        return response


def _resolved(items: Sequence[Json], known: Sequence[Mapping[str, Any]]) -> list[Json]:
    """``items`` without references: what they name is part of the conversation already."""
    ids = [item.get("id") for item in known]
    for position, item in enumerate(items):
        if item["type"] == _REFERENCE and item.get("id") not in ids:
            shown = str(item.get("id"))[:64]
            raise InvalidRequest(
                f"Item '{shown}' is not part of the conversation.",
                param=f"input[{position}]",
                code="item_not_found",
            )
    return [item for item in items if item["type"] != _REFERENCE]


def _with_ids(items: Sequence[Json]) -> list[Json]:
    """Input items as they are listed: each with an id, a message's text as a part."""
    return [_listed(item) for item in items]


def _listed(item: Json) -> Json:
    listed = {"id": new_id(_ITEM_PREFIX.get(item["type"], "msg")), **item}
    if item["type"] == "message":
        listed.setdefault("status", "completed")
        if isinstance(item["content"], str):
            kind = "output_text" if item["role"] == "assistant" else "input_text"
            part: Json = {"type": kind, "text": item["content"]}
            if kind == "output_text":
                part["annotations"] = []
            listed["content"] = [part]
    return listed
