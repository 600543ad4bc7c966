"""The offline backlog as one batch of a running gateway, and the engines' own count of tokens."""

import asyncio
import contextlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import aiohttp

from gateway.bench.coserve.live_host import Filler
from gateway.core.errors import BenchmarkFailed

_COUNTER = re.compile(
    r"^(?:vllm:|sglang:|headway_worker_)(prompt|generation|output)_tokens_total\S* ([0-9.e+]+)$",
    re.MULTILINE,
)
_ENDED = {"completed", "failed", "expired", "cancelled"}
_CANCEL_SECONDS = 30.0
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Gateway:
    """Where clients call; ``url`` ends in ``/v1``."""

    url: str
    model: str
    api_key: str


class OfflineBatch:
    """A batch of more rows than can be done in the time; cancelled at the end."""

    def __init__(self, session: aiohttp.ClientSession, gateway: Gateway, template: int = 0) -> None:
        self._session = session
        self._gateway = gateway
        self._filler = Filler(2, template)
        self._file = ""
        self._batch = ""

    async def upload(self, lengths: Iterable[tuple[int, int]], rows: int) -> None:
        """Send the input file; nothing runs yet."""
        lines = []
        for at, (prompt, output) in enumerate(islice(lengths, rows)):
            body = {
                "model": self._gateway.model,
                "messages": [{"role": "user", "content": self._filler.text(prompt)}],
                "max_tokens": output,
                "ignore_eos": True,
                "temperature": 0,
            }
            line = {"custom_id": f"row-{at}", "method": "POST", "url": "/v1/chat/completions"}
            lines.append(json.dumps({**line, "body": body}))
        form = aiohttp.FormData()
        form.add_field("purpose", "batch")
        form.add_field("file", "\n".join(lines).encode(), filename="coserve.jsonl")
        self._file = (await self._ask("POST", "files", data=form))["id"]

    async def start(self) -> None:
        """Create the batch."""
        body = {
            "input_file_id": self._file,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
        }
        self._batch = (await self._ask("POST", "batches", json=body))["id"]

    async def stop(self) -> None:
        """Cancel it and wait until nothing of it runs. Raises BenchmarkFailed."""
        if not self._batch:
            return
        if await self._status() not in _ENDED:
            with contextlib.suppress(BenchmarkFailed):  # it may have ended just now
                await self._ask("POST", f"batches/{self._batch}/cancel")
        try:
            async with asyncio.timeout(_CANCEL_SECONDS):
                while await self._status() not in _ENDED:  # noqa: ASYNC110 - another process
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            raise BenchmarkFailed("the batch did not end after it was cancelled") from None

    async def _status(self) -> str:
        return (await self._ask("GET", f"batches/{self._batch}"))["status"]

    async def _ask(self, method: str, path: str, **content: object) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self._gateway.api_key}"}
        url = f"{self._gateway.url}/{path}"
        async with self._session.request(method, url, headers=headers, **content) as answer:  # type: ignore[arg-type]
            if answer.status >= 400:  # noqa: PLR2004 - any refusal
                raise BenchmarkFailed(f"{method} {path}: {(await answer.text())[:300]}")
            found: dict[str, str] = await answer.json()
            return found


async def tokens_of(session: aiohttp.ClientSession, urls: Iterable[str]) -> tuple[float, float]:
    """Prompt and output tokens that the engines have done so far, by their metrics.

    Raises BenchmarkFailed for an engine that does not say.
    """
    totals = {"prompt": 0.0, "generation": 0.0, "output": 0.0}
    for url in urls:
        async with session.get(f"{url.removesuffix('/v1')}/metrics") as answer:
            found = _COUNTER.findall(await answer.text())
        if not found:
            raise BenchmarkFailed(f"{url} has no metrics that count tokens")
        for name, value in found:
            totals[name] += float(value)
    return totals["prompt"], totals["generation"] + totals["output"]
