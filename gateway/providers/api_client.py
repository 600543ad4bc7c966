"""A client of a running Headway (or any OpenAI-compatible batch API), for the command line."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import httpx

from gateway.core.errors import ClientError, HeadwayError, Unavailable
from gateway.core.lines import LineSplitter

_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
_CHUNK = 256 * 1024


class ApiClient:
    """Files, batches and jobs over HTTP; ``base_url`` ends in ``/v1``.

    Every method raises Unavailable when nobody answers, ClientError for a 4xx and HeadwayError for
    any other answer that is not a success, with the server's own message.
    """

    def __init__(self, base_url: str, key: str) -> None:
        self._base_url = base_url.rstrip("/")
        self._client = httpx.Client(headers={"authorization": f"Bearer {key}"}, timeout=_TIMEOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def upload(self, path: Path, sent: Callable[[int], object]) -> dict[str, Any]:
        """Upload ``path`` as an input file; ``sent`` is called with the bytes read so far."""
        with path.open("rb") as source:
            form = {"file": (path.name, _Counted(source, sent), "application/jsonl")}
            return self._json("POST", "/files", files=form, data={"purpose": "batch"})

    def create_batch(self, file_id: str, endpoint: str, window: str) -> dict[str, Any]:
        """Start a batch over an uploaded file."""
        wanted = {
            "input_file_id": file_id,
            "endpoint": endpoint,
            "completion_window": window,
        }
        return self._json("POST", "/batches", json=wanted)

    def batch(self, batch_id: str) -> dict[str, Any]:
        """One batch as it stands."""
        return self._json("GET", f"/batches/{batch_id}")

    def batches(self, limit: int) -> list[dict[str, Any]]:
        """The newest ``limit`` batches."""
        page: list[dict[str, Any]] = self._json("GET", "/batches", params={"limit": limit})["data"]
        return page

    def cancel(self, batch_id: str) -> dict[str, Any]:
        """Ask for a batch to be cancelled."""
        return self._json("POST", f"/batches/{batch_id}/cancel")

    def results(self, batch_id: str, after: str, *, follow: bool) -> Iterator[str]:
        """Finished lines behind a cursor as they come, without the signs of life.

        Raises Unavailable when the answer breaks off: there is more behind the last line.
        """
        query: dict[str, str | int] = {"after": after, "follow": int(follow)}
        splitter = LineSplitter()
        with self._streamed(f"/batches/{batch_id}/results", query) as answer:
            for piece in answer.iter_bytes():
                yield from (line.decode() for line in splitter.feed(piece) if line)

    def create_job(
        self, endpoint: str, body: Mapping[str, Any], key: str | None = None, **options: Any
    ) -> dict[str, Any]:
        """Have one call run later; ``options`` are further members that are not None."""
        given = {name: value for name, value in options.items() if value is not None}
        headers = {} if key is None else {"idempotency-key": key}
        wanted = {"endpoint": endpoint, "body": body, **given}
        return self._json("POST", "/jobs", json=wanted, headers=headers)

    def job(self, job_id: str) -> dict[str, Any]:
        """One job as it stands."""
        return self._json("GET", f"/jobs/{job_id}")

    def jobs(self, limit: int) -> list[dict[str, Any]]:
        """The newest ``limit`` jobs."""
        page: list[dict[str, Any]] = self._json("GET", "/jobs", params={"limit": limit})["data"]
        return page

    def job_result(self, job_id: str) -> dict[str, Any]:
        """What the call was answered. Raises as the call itself would."""
        return self._json("GET", f"/jobs/{job_id}/result")

    def cancel_job(self, job_id: str) -> dict[str, Any]:
        """Cancel a job."""
        return self._json("POST", f"/jobs/{job_id}/cancel")

    def download(self, file_id: str) -> Iterator[bytes]:
        """The content of a file, piece by piece."""
        with self._streamed(f"/files/{file_id}/content") as answer:
            yield from answer.iter_bytes(_CHUNK)

    @contextmanager
    def _streamed(
        self, path: str, query: Mapping[str, str | int] | None = None
    ) -> Iterator[httpx.Response]:
        """A success whose body is still on its way."""
        try:
            with self._client.stream("GET", self._base_url + path, params=query) as answer:
                if answer.is_error:
                    answer.read()
                    raise _failure(answer)
                yield answer
        except httpx.TransportError as error:
            raise self._away() from error

    def _json(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        try:
            answer = self._client.request(method, self._base_url + path, **content)
        except httpx.TransportError as error:
            raise self._away() from error
        if answer.is_error:
            raise _failure(answer)
        body: dict[str, Any] = answer.json()
        return body

    def _away(self) -> Unavailable:
        return Unavailable(f"No gateway answers at {self._base_url}: is `headway serve` running?")


class _Counted:
    """A file that tells how much of it was read."""

    def __init__(self, source: BinaryIO, sent: Callable[[int], object]) -> None:
        self._source = source
        self._sent = sent

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._sent(self._source.tell())
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._source.seek(offset, whence)

    def tell(self) -> int:
        return self._source.tell()

    def fileno(self) -> int:
        return self._source.fileno()


def _failure(answer: httpx.Response) -> HeadwayError:
    try:
        error = answer.json()["error"]
        message, param, code = error["message"], error.get("param"), error.get("code")
    except (ValueError, KeyError, TypeError):
        message, param, code = f"The gateway answered {answer.status_code}.", None, None
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        return Unavailable(message, code=code)
    kind = ClientError if answer.is_client_error else HeadwayError
    return kind(message, param=param, code=code)
