"""What a 200 MB upload does to 64 interactive streams and to the gateway's memory.

    .venv/bin/python benchmarks/upload_gap.py

Starts `headway serve` before an upstream of its own that sends a token every 10 ms, holds 64
streams open and measures the time between tokens: first idle, then while a client uploads 50,000
lines of 4 kB at 100 MB/s. Reports the 99th percentiles of both and how much the gateway's memory
grew.
"""

import asyncio
import contextlib
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import psutil
import uvloop

STREAMS = 64
TOKEN_SECONDS = 0.01
IDLE_SECONDS = 5.0
LINES, LINE_BYTES = 50_000, 4_000
BYTES_PER_SECOND = 100e6
PIECE = 256 * 1024
KEY = "hw-bench-key"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def event() -> bytes:
    """One token as a chunk of the answer."""
    delta = {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}]}
    text = b"data: " + json.dumps({"id": "c", "object": "chat.completion.chunk", **delta}).encode()
    return b"%x\r\n%s\n\n\r\n" % (len(text) + 2, text)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Stream tokens until the caller leaves."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
        writer.write(HEAD)
        token = event()
        due = time.monotonic()
        while not writer.is_closing():
            writer.write(token)
            await writer.drain()
            due += TOKEN_SECONDS
            await asyncio.sleep(max(0.0, due - time.monotonic()))


def upstream(pipe: "multiprocessing.connection.Connection") -> None:
    """A process that plays the model server."""

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(run())


def upload(base_url: str) -> float:
    """Upload at a steady pace; returns the seconds it took."""
    body = {"model": "m", "messages": [{"role": "user", "content": "x" * LINE_BYTES}]}
    line = {"custom_id": "0" * 8, "method": "POST", "url": "/v1/chat/completions", "body": body}
    cut = len(json.dumps(line)) - LINE_BYTES
    body["messages"][0]["content"] = "x" * (LINE_BYTES - cut - 1)
    text = json.dumps(line).encode() + b"\n"
    start = (
        b'--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b\r\n'
        b'Content-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n'
    )

    def pieces() -> "contextlib.Iterator[bytes]":  # type: ignore[name-defined]
        yield start
        began, sent, block = time.monotonic(), 0, text * (PIECE // len(text))
        left = LINES * len(text)
        while left:
            piece = block[: min(left, len(block))]
            yield piece
            left -= len(piece)
            sent += len(piece)
            time.sleep(max(0.0, began + sent / BYTES_PER_SECOND - time.monotonic()))
        yield b"\r\n--b--\r\n"

    headers = {"authorization": f"Bearer {KEY}", "content-type": "multipart/form-data; boundary=b"}
    began = time.monotonic()
    done = httpx.post(f"{base_url}/files", content=pieces(), headers=headers, timeout=120)
    done.raise_for_status()
    assert done.json()["bytes"] == LINES * len(text)
    return time.monotonic() - began


async def listen(base_url: str, gaps: list[tuple[float, float]]) -> None:
    """One stream; notes when a token came and how long after the last one."""
    host, _, port = base_url.removeprefix("http://").removesuffix("/v1").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps(
        {"model": "m", "stream": True, "messages": [{"role": "user", "content": "a"}]}
    )
    writer.write(
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    last = 0.0
    try:
        async for line in reader:
            if line.startswith(b"data:"):
                now = time.monotonic()
                if last:
                    gaps.append((now, now - last))
                last = now
    finally:
        writer.close()


def p99(gaps: list[tuple[float, float]], start: float, end: float) -> float:
    """The 99th percentile of the gaps that ended in a stretch, in milliseconds."""
    found = [gap for at, gap in gaps if start <= at <= end]
    return 1000 * statistics.quantiles(found, n=100)[98]


async def measure(base_url: str, pid: int) -> dict[str, float]:
    """Idle, then with an upload."""
    gaps: list[tuple[float, float]] = []
    tasks = [asyncio.create_task(listen(base_url, gaps)) for _ in range(STREAMS)]
    await asyncio.sleep(1.0)
    start = time.monotonic()
    await asyncio.sleep(IDLE_SECONDS)
    middle = time.monotonic()
    gateway = psutil.Process(pid)
    before = peak = gateway.memory_info().rss
    work = asyncio.create_subprocess_exec(sys.executable, __file__, base_url, stdout=-1)
    process = await work
    while process.returncode is None:
        peak = max(peak, gateway.memory_info().rss)
        await asyncio.sleep(0.02)
    end = time.monotonic()
    output, _ = await process.communicate()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "idle p99 ms": p99(gaps, start, middle),
        "upload p99 ms": p99(gaps, middle + 0.3, end),
        "upload seconds": float(output),
        "growth MB": (peak - before) / 2**20,
    }


def main() -> None:
    """Three runs; the median of each figure."""
    if len(sys.argv) > 1:
        sys.stdout.write(str(upload(sys.argv[1])))
        return
    mine, theirs = multiprocessing.Pipe()
    player = multiprocessing.Process(target=upstream, args=(theirs,), daemon=True)
    player.start()
    port = mine.recv()
    with tempfile.TemporaryDirectory() as name:
        policy = Path(name) / "policy.yaml"
        target = {"base_url": f"http://127.0.0.1:{port}/v1", "models": ["m"]}
        target["lanes"] = {"interactive": {"max_in_flight": 128}}
        policy.write_text(json.dumps({"targets": {"up": target}}))
        data = Path(name) / "data"
        command = [sys.executable, "-m", "gateway", "serve", "--port", "0"]
        command += ["--policy", str(policy), "--data-dir", str(data)]
        env = {**os.environ, "HEADWAY_API_KEY": KEY}  # noqa: TID251 - a child's environment
        with subprocess.Popen(command, env=env, stdout=-3, stderr=-3) as process:  # noqa: S603 - ours
            try:
                while not (data / "gateway.json").exists():
                    time.sleep(0.05)
                base_url = json.loads((data / "gateway.json").read_text())["base_url"]
                time.sleep(1.0)
                runs = [uvloop.run(measure(base_url, process.pid)) for _ in range(3)]
            finally:
                process.terminate()
    for figure in runs[0]:
        values = sorted(run[figure] for run in runs)
        sys.stdout.write(f"{figure:16} median {values[1]:7.1f}   runs {values}\n")


if __name__ == "__main__":
    main()
