"""The Files API: /v1/files."""

from collections.abc import AsyncIterator
from pathlib import PurePosixPath
from urllib.parse import quote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from gateway.api.auth import caller_of
from gateway.api.body import declared_length
from gateway.api.json_response import JsonResponse
from gateway.api.multipart import Form, receive
from gateway.core.errors import ClientGone, MissingParameter, PayloadTooLarge
from gateway.core.settings import Settings
from gateway.schemas.deleted import deleted_object
from gateway.schemas.file import (
    BATCH,
    MAX_EXPIRY,
    check_expiry,
    check_filename,
    check_purpose,
)
from gateway.schemas.lists import list_object, parse_page
from gateway.store.files import FileRecord, FileStore, Upload

_LARGEST = 512 * 2**20
_FORM_SLACK = 2**20
_DRAINED = 64 * 2**20
_PAGE = 10_000


def file_routes(files: FileStore, settings: Settings) -> list[Route]:
    """The routes, for mounting below ``/v1``'s parent: paths start with ``/v1/files``."""
    api = FilesApi(files, settings.max_upload_bytes)
    return [
        Route("/v1/files", api.upload, methods=["POST"]),
        Route("/v1/files", api.list, methods=["GET"]),
        Route("/v1/files/{file_id}", api.retrieve, methods=["GET"]),
        Route("/v1/files/{file_id}", api.delete, methods=["DELETE"]),
        Route("/v1/files/{file_id}/content", api.content, methods=["GET"]),
    ]


class FilesApi:
    """Handlers. ``batch_limit`` is the largest file for purpose=batch, in bytes."""

    def __init__(self, files: FileStore, batch_limit: int) -> None:
        self._files = files
        self._batch_limit = batch_limit
        self._limit = max(_LARGEST, batch_limit)

    async def upload(self, request: Request) -> Response:
        """POST /v1/files: streamed to disk, whole or not at all."""
        tenant = caller_of(request).tenant
        if declared_length(request.scope["headers"]) > self._limit + _FORM_SLACK:
            raise _too_large(self._limit)
        body = _Body(request)
        upload = await self._files.start(tenant)
        try:
            record = await self._receive(request, body, upload)
        except PayloadTooLarge:
            await body.drain()
            raise
        except ClientDisconnect:
            raise ClientGone("The caller left during the upload.") from None
        finally:
            await upload.abort()
        return JsonResponse(record.to_openai())

    async def list(self, request: Request) -> Response:
        """GET /v1/files."""
        query = request.query_params
        page = parse_page(query, default=_PAGE, most=_PAGE, prefix="file-")
        purpose = query.get("purpose") or None
        records, has_more = await self._files.page(caller_of(request).tenant, page, purpose)
        return JsonResponse(list_object([r.to_openai() for r in records], has_more=has_more))

    async def retrieve(self, request: Request) -> Response:
        """GET /v1/files/{file_id}."""
        record = await self._files.get(caller_of(request).tenant, request.path_params["file_id"])
        return JsonResponse(record.to_openai())

    async def delete(self, request: Request) -> Response:
        """DELETE /v1/files/{file_id}. A batch that uses the file goes on with its own link."""
        file_id = request.path_params["file_id"]
        await self._files.delete(caller_of(request).tenant, file_id)
        return JsonResponse(deleted_object("file", file_id))

    async def content(self, request: Request) -> Response:
        """GET /v1/files/{file_id}/content: the bytes as they came, whatever Accept says."""
        tenant, file_id = caller_of(request).tenant, request.path_params["file_id"]
        record = await self._files.get(tenant, file_id)
        headers = {
            "content-length": str(record.bytes),
            "content-disposition": _disposition(record.filename),
            "x-content-type-options": "nosniff",
        }
        if request.method == "HEAD":
            return Response(headers=headers, media_type="application/octet-stream")
        body = await self._files.content(tenant, file_id)
        return StreamingResponse(body, headers=headers, media_type="application/octet-stream")

    async def _receive(self, request: Request, body: "_Body", upload: Upload) -> FileRecord:
        async def sink(data: bytes) -> None:
            if upload.size + len(data) > self._limit:
                raise _too_large(self._limit)
            await upload.write(data)

        form = await receive(request.headers.get("content-type", ""), body, sink)
        purpose, filename, keep = _checked(form)
        if purpose == BATCH and upload.size > self._batch_limit:
            raise _too_large(self._batch_limit)
        return await upload.finish(filename, purpose, keep)


class _Body:
    """The request body, of which the rest can be thrown away so that a caller reads our answer."""

    def __init__(self, request: Request) -> None:
        self._stream = request.stream()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._stream

    async def drain(self) -> None:
        """Read on for a while without keeping anything."""
        left = _DRAINED
        try:
            async for chunk in self._stream:
                left -= len(chunk)
                if left < 0:
                    return
        except ClientDisconnect:
            return


def _checked(form: Form) -> tuple[str, str, int | None]:
    if form.filename is None:
        raise MissingParameter("file is missing.", param="file")
    purpose = check_purpose(form.fields.get("purpose"))
    keep = check_expiry(
        form.fields.get("expires_after[anchor]"), form.fields.get("expires_after[seconds]")
    )
    if keep is None and purpose == BATCH:
        keep = MAX_EXPIRY
    return purpose, check_filename(form.filename), keep


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The file is larger than {limit} bytes.", param="file")


def _disposition(filename: str) -> str:
    """A header that cannot be broken out of, with no path in the name."""
    name = PurePosixPath(filename.replace("\\", "/")).name or "file"
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._- ") else "_" for c in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
