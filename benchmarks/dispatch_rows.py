"""Rows a second of one dispatcher, end to end, over a target that answers at once.

    python benchmarks/dispatch_rows.py [ROWS] [WINDOW]

Starts ``headway serve`` on a fresh directory and a target in a process of its own whose every
answer is ready made (a streamed chat answer of three events), uploads one batch, waits for its
output file, and prints rows a second from the first row called to the last row committed, and the
processor seconds of the dispatcher meanwhile.
"""

import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from gateway.core.settings import child_environment
from gateway.providers.api_client import ApiClient

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

_KEY = "hw-benchmark"
_START_SECONDS = 30.0


def _events() -> bytes:
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    usage = {"prompt_tokens": 8, "completion_tokens": 4, "total_tokens": 12}
    delta = {"role": "assistant", "content": "four words of answer"}
    chunks = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**base, "choices": [], "usage": usage},
    ]
    frames = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    return b"".join([*frames, b"data: [DONE]\n\n"])


_BODY = _events()
_ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(_BODY)
) + _BODY


class _Instant(asyncio.Protocol):
    """Answers each whole request with the same bytes."""

    def __init__(self, first: "Synchronized[float]") -> None:
        self._first = first
        self._data = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Requests come one at a time; a body is as long as its header says."""
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if end and len(body) >= int(length or 0):
            self._first.value = self._first.value or time.monotonic()
            self._data = b""
            assert self._transport is not None
            self._transport.write(_ANSWER)


def _serve_target(port: "Synchronized[int]", first: "Synchronized[float]") -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Instant(first), "127.0.0.1", 0, backlog=1024)
        port.value = server.sockets[0].getsockname()[1]
        await server.serve_forever()

    asyncio.run(serve())


def _lines(path: Path, rows: int) -> None:
    with path.open("w") as file:
        for number in range(rows):
            text = {"role": "user", "content": f"Say four words about number {number}."}
            body = {"model": "m", "messages": [text], "max_tokens": 4}
            line = {
                "custom_id": str(number),
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": body,
            }
            file.write(json.dumps(line) + "\n")


def _wait(look: Any, seconds: float) -> Any:
    end = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > end:
            raise SystemExit("it did not come in time")
        time.sleep(0.05)
    return found


def _address(folder: Path) -> str | None:
    try:
        return str(json.loads((folder / "data" / "gateway.json").read_text())["base_url"])
    except (OSError, ValueError):
        return None


def _dispatcher(gateway: int) -> psutil.Process | None:
    children = psutil.Process(gateway).children(recursive=True)
    return next((child for child in children if "dispatch" in child.cmdline()), None)


def _measure(folder: Path, gateway: int, rows: int, first: "Synchronized[float]") -> None:
    url = _wait(lambda: _address(folder), _START_SECONDS)
    dispatcher = _wait(lambda: _dispatcher(gateway), _START_SECONDS)
    _lines(folder / "input.jsonl", rows)
    with ApiClient(url, _KEY) as client:
        file_id = client.upload(folder / "input.jsonl", lambda _: None)["id"]
        created = time.monotonic()
        batch_id = client.create_batch(file_id, "/v1/chat/completions", "24h")["id"]
        _wait(lambda: first.value, 120)
        before = sum(dispatcher.cpu_times()[:2])

        def counted() -> bool:
            return int(client.batch(batch_id)["request_counts"]["completed"]) >= rows

        _wait(counted, 600)
        took = time.monotonic() - first.value
        cpu = sum(dispatcher.cpu_times()[:2]) - before
        _wait(lambda: client.batch(batch_id)["status"] == "completed", 60)
        whole = time.monotonic() - created
    sys.stdout.write(
        f"{rows} rows: {rows / took:.0f} rows/s, {rows / cpu:.0f} rows per dispatcher"
        f" processor second ({cpu:.1f} s); {whole:.1f} s from create to output file\n"
    )


def main() -> None:
    """Run once."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    window = int(sys.argv[2]) if len(sys.argv) > 2 else 64  # noqa: PLR2004 - the second argument
    port = multiprocessing.Value("i", 0)
    first = multiprocessing.Value("d", 0.0)
    target = multiprocessing.Process(target=_serve_target, args=(port, first), daemon=True)
    target.start()
    number = _wait(lambda: port.value, _START_SECONDS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lanes = {"batch": {"max_in_flight": window}}
        one = {"base_url": f"http://127.0.0.1:{number}/v1", "models": ["m"], "lanes": lanes}
        (folder / "policy.yaml").write_text(json.dumps({"targets": {"instant": one}}))
        command = [sys.executable, "-m", "gateway", "serve", "--port", "0"]
        command += ["--data-dir", str(folder / "data"), "--policy", str(folder / "policy.yaml")]
        environment = child_environment({"HEADWAY_API_KEY": _KEY})
        with Path(os.devnull).open("wb") as sink:
            process = subprocess.Popen(command, env=environment, stdout=sink, stderr=sink)  # noqa: S603 - our own command
        try:
            _measure(folder, process.pid, rows, first)
        finally:
            process.terminate()
            process.wait(30)
            target.terminate()


if __name__ == "__main__":
    main()
