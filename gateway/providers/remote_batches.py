"""A provider's own Batch API: upload, create, watch, collect, cancel."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import httpx

import gateway
from gateway.core.clock import Clock
from gateway.core.errors import UpstreamError, UpstreamFailed, UpstreamTimeout
from gateway.core.exact_json import loads_exactly
from gateway.core.lines import LineSplitter
from gateway.providers import transport as wire
from gateway.providers.failures import failure
from gateway.providers.registry import TargetSettings, access_of
from gateway.providers.scrubber import Scrubber

ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
MARK = "headway"
_FIRST_FAILURE = 300
_CALL_SECONDS = 60.0
_TRANSFER_SECONDS = 1800.0
_LISTED = 100


@dataclass(frozen=True, slots=True)
class RemoteBatch:
    """A batch as the provider sees it. ``fault`` says why it failed, if it did."""

    id: str
    status: str
    files: tuple[str, ...]
    fault: str
    mark: str

    @property
    def ended(self) -> bool:
        """Whether nothing will be added to its files any more."""
        return self.status in ENDED

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        """From the provider's object. ``files`` are those of results and of errors."""
        named = (body.get("output_file_id"), body.get("error_file_id"))
        errors = (body.get("errors") or {}).get("data") or [{}]
        return cls(
            str(body["id"]),
            str(body["status"]),
            tuple(str(name) for name in named if name),
            str(errors[0].get("message") or ""),
            str((body.get("metadata") or {}).get(MARK, "")),
        )


class RemoteBatches:
    """Batches at one target. Every method raises UpstreamError when it did not work."""

    def __init__(
        self,
        name: str,
        base_url: str,
        clock: Clock,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        extra = dict(headers or {})
        self.scrub = Scrubber.of(base_url, api_key, *extra.values())
        self._clock = clock
        self._base_url = base_url.rstrip("/")
        sent = {
            "User-Agent": f"headway/{gateway.__version__}",
            **({"Authorization": f"Bearer {api_key}"} if api_key else {}),
            **extra,
        }
        self._client = httpx.AsyncClient(transport=wire.new_transport(sent), timeout=None)  # noqa: S113 - each call has its own limit

    async def upload(self, content: bytes) -> str:
        """Upload the requests; returns the id of the file."""
        form = {"file": ("headway.jsonl", content, "application/jsonl")}
        body = await self._json(
            "POST", "/files", _TRANSFER_SECONDS, files=form, data={"purpose": "batch"}
        )
        return str(body["id"])

    async def create(self, file_id: str, endpoint: str, window: str, mark: str) -> RemoteBatch:
        """Start a batch that can be found again by ``mark``."""
        wanted = {
            "input_file_id": file_id,
            "endpoint": endpoint,
            "completion_window": window,
            "metadata": {MARK: mark},
        }
        return RemoteBatch.of(await self._json("POST", "/batches", json=wanted))

    async def find(self, mark: str) -> RemoteBatch | None:
        """The batch of that mark among the newest hundred."""
        page = await self._json("GET", "/batches", params={"limit": _LISTED})
        found = (RemoteBatch.of(body) for body in page.get("data", ()))
        return next((batch for batch in found if batch.mark == mark), None)

    async def get(self, batch_id: str) -> RemoteBatch:
        """The batch as it stands."""
        return RemoteBatch.of(await self._json("GET", f"/batches/{batch_id}"))

    async def cancel(self, batch_id: str) -> None:
        """Ask for the end; the batch goes on until the provider has stopped it."""
        await self._json("POST", f"/batches/{batch_id}/cancel")

    async def delete_file(self, file_id: str) -> None:
        """Remove a file of ours."""
        await self._json("DELETE", f"/files/{file_id}")

    async def lines(self, file_id: str) -> AsyncIterator[dict[str, Any]]:
        """The lines of a result file that are JSON objects."""
        url = f"{self._base_url}/files/{file_id}/content"
        splitter = LineSplitter()
        try:
            async with (
                asyncio.timeout(_TRANSFER_SECONDS),
                self._client.stream("GET", url) as answer,
            ):
                if answer.status_code >= _FIRST_FAILURE:
                    await answer.aread()
                    raise self._failure(answer)
                async for piece in answer.aiter_bytes():
                    for line in splitter.feed(piece):
                        if parsed := _object(line):
                            yield parsed
        except TimeoutError:
            raise self._late() from None
        except wire.TRANSPORT_ERRORS as error:
            raise wire.before_head(error, self.name) from None
        if parsed := _object(splitter.rest()):
            yield parsed

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def _json(
        self, method: str, path: str, seconds: float = _CALL_SECONDS, **content: Any
    ) -> dict[str, Any]:
        try:
            async with asyncio.timeout(seconds):
                answer = await self._client.request(method, self._base_url + path, **content)
        except TimeoutError:
            raise self._late() from None
        except wire.TRANSPORT_ERRORS as error:
            raise wire.before_head(error, self.name) from None
        if answer.status_code >= _FIRST_FAILURE:
            raise self._failure(answer)
        if (body := _object(answer.content)) is None:
            raise UpstreamFailed("The target's answer is not a JSON object.", target=self.name)
        return body

    def _failure(self, answer: httpx.Response) -> UpstreamError:
        return failure(
            self.name,
            answer.status_code,
            answer.headers,
            answer.content,
            self.scrub,
            self._clock.now,
        )

    def _late(self) -> UpstreamTimeout:
        return UpstreamTimeout("The target did not answer within its limit.", target=self.name)


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        parsed = loads_exactly(text)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def remote_batches(name: str, policy: TargetSettings, clock: Clock) -> RemoteBatches:
    """The Batch API of a target, with its first key. Raises ConfigError without an address."""
    base_url, keys, headers = access_of(name, policy)
    return RemoteBatches(name, base_url, clock, api_key=keys[0] if keys else None, headers=headers)
