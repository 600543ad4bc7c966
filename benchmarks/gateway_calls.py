"""What a call through the gateway costs: CPU per call and per event of a stream, and memory.

    .venv/bin/python benchmarks/gateway_calls.py
    .venv/bin/python benchmarks/gateway_calls.py --against ../older-checkout --rounds 8

Starts `headway serve` on core 0, before an upstream and a load generator on the last core, and
measures the gateway's process in short rounds; another checkout in turns with it, so that what else
the machine does meets both. Compare ratios; the least of the rounds is the best estimate.
"""

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import orjson
import uvloop
from gateway_upstream import serve_upstream

KEY = "hw-bench-key"
HERE = Path(__file__).parents[1]
#: Connections, bytes of the request, seconds between tokens (0: no stream), model; a model but
#: ``m`` is asked for a response: ``r`` has that endpoint at its target, ``c`` and ``s`` chat alone;
#: that of ``s`` is kept.
SCENES = {
    "418 B, 32 connections": (32, 418, 0.0, "m"),
    "36 KB, 32 connections": (32, 36_000, 0.0, "m"),
    "64 streams, 10 ms": (64, 418, 0.01, "m"),
    "512 streams, 20 ms": (512, 418, 0.02, "m"),
    "response, of chat": (32, 418, 0.0, "c"),
    "response, of chat, kept": (32, 418, 0.0, "s"),
    "response, native": (32, 418, 0.0, "r"),
    "64 responses, of chat": (64, 418, 0.01, "c"),
    "64 responses, native": (64, 418, 0.01, "r"),
}


class Caller(asyncio.Protocol):
    """Sends the same request again and again until the time is over."""

    def __init__(self, request: bytes, until: float, *, stream: bool) -> None:
        self.request, self.until, self.stream = request, until, stream
        self.calls = self.events = self.failed = 0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        self.transport = transport
        self.send()

    def send(self) -> None:
        """One call, if there is time."""
        self.left, self.got = -1, b""
        if time.monotonic() > self.until:
            self.transport.close()
        else:
            self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        """Count what comes; at the end of an answer send the next call."""
        if self.stream:
            self.stream_received(data)
            return
        self.got += data
        if self.left < 0:
            head, mark, _ = self.got.partition(b"\r\n\r\n")
            if not mark:
                return
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r")[0])
            self.failed += not head.startswith(b"HTTP/1.1 200")
            self.left = len(head) + 4 + length
        if len(self.got) >= self.left:
            self.calls += 1
            self.send()

    def stream_received(self, data: bytes) -> None:
        """Events are told by their blank lines, the end by the last chunk."""
        if not self.got:
            self.failed += not data.startswith(b"HTTP/1.1 200")
        self.events += data.count(b"data: ")
        self.got = (self.got + data)[-5:]
        if self.got == b"0\r\n\r\n":
            self.calls += 1
            self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        """Over."""
        self.failed += exc is not None
        if not self.done.done():
            self.done.set_result(None)


def load(port: int, scene: str, seconds: float, results: "multiprocessing.Queue[dict]") -> None:
    """The load generator's process: one scene."""
    os.sched_setaffinity(0, {os.cpu_count() - 1})
    connections, size, pace, model = SCENES[scene]
    messages = [{"role": "user", "content": "x" * (size - 80)}]
    asked = {"messages": messages} if model == "m" else {"input": messages, "store": model == "s"}
    body = orjson.dumps({"model": model, **asked, "stream": pace > 0, "user": str(pace)})
    path = b"chat/completions" if model == "m" else b"responses"
    request = (
        b"POST /v1/%b HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer %b\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
    ) % (path, KEY.encode(), len(body), body)

    async def run() -> list[Caller]:
        loop, until = asyncio.get_running_loop(), time.monotonic() + seconds
        callers = []
        for _ in range(connections):
            _, caller = await loop.create_connection(
                lambda: Caller(request, until, stream=pace > 0), "127.0.0.1", port
            )
            callers.append(caller)
            await asyncio.sleep(1 / connections if pace else 0)
        await asyncio.gather(*(caller.done for caller in callers))
        return callers

    callers = uvloop.run(run())
    results.put(
        {
            "calls": sum(c.calls for c in callers),
            "events": sum(c.events for c in callers),
            "failed": sum(c.failed for c in callers),
        }
    )


class Gateway:
    """``headway serve`` of a checkout, on core 0."""

    def __init__(self, tree: Path, upstream: int, port: int) -> None:
        self.tree, self.port = tree, port
        self.folder = tempfile.TemporaryDirectory(
            prefix="headway-bench-", ignore_cleanup_errors=True
        )
        policy = Path(self.folder.name, "policy.yaml")
        place = f"base_url: 'http://127.0.0.1:{upstream}/v1', "
        rules = "lanes: {interactive: {max_in_flight: 1024}}"
        policy.write_text(
            f"targets: {{up: {{{place} models: [m, c, s], {rules}}}, "
            f"native: {{{place} models: [r], responses: true, {rules}}}}}"
        )
        command = [sys.executable, "-m", "gateway", "serve", "--policy", str(policy)]
        command += ["--port", str(port), "--data-dir", self.folder.name + "/data"]
        env = {**os.environ, "PYTHONPATH": str(tree), "HEADWAY_API_KEY": KEY}  # noqa: TID251 - a child's environment
        self.process = subprocess.Popen(command, cwd=tree, env=env, stdout=-3, stderr=-3)  # noqa: S603 - ours
        os.sched_setaffinity(self.process.pid, {0})

    def wait(self) -> None:
        """Until it answers."""
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/livez", timeout=1)
                return
            time.sleep(0.1)
        raise SystemExit("the gateway did not start: try `headway serve` by hand")

    def cpu(self) -> float:
        """Seconds of CPU that its own process has used, without its children."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def memory(self, what: str) -> float:
        """MB: ``VmRSS`` now, ``VmHWM`` at most."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split(f"{what}:")[1].split()[0]) / 1024

    def stop(self) -> None:
        """End it and remove what it wrote."""
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


def measure(gateway: Gateway, scene: str, seconds: float) -> float:
    """Microseconds of CPU per call or event."""
    results: multiprocessing.Queue[dict] = multiprocessing.Queue()
    before = gateway.cpu()
    process = multiprocessing.Process(target=load, args=(gateway.port, scene, seconds, results))
    process.start()
    found = results.get(timeout=seconds + 60)
    process.join()
    if found["failed"]:
        raise SystemExit(f"{scene}: {found['failed']} calls failed")
    count = found["events"] or found["calls"]
    return (gateway.cpu() - before) / count * 1e6


def compare(gateways: list[Gateway], rounds: int, seconds: float, chosen: list[str]) -> None:
    """Each scene in rounds, the gateways in turns."""
    for gateway in gateways:
        gateway.wait()
    time.sleep(1)
    say("MB idle", [round(g.memory("VmRSS"), 1) for g in gateways])
    for scene in chosen:
        pace = SCENES[scene][2]
        figures: list[list[float]] = [[] for _ in gateways]
        for _ in range(rounds):
            for place, gateway in enumerate(gateways):
                figures[place].append(measure(gateway, scene, 3 * seconds if pace else seconds))
        for gateway, costs in zip(gateways, figures, strict=True):
            told = f"{min(costs):7.1f} least {statistics.median(costs):7.1f} median"
            say(scene, f"{told} µs per {'event' if pace else 'call'}  {gateway.tree}")
    say("MB at most", [round(g.memory("VmHWM"), 1) for g in gateways])


def say(figure: str, value: object) -> None:
    """A line of the result."""
    print(f"{figure:24} {value}", flush=True)  # noqa: T201 - the result


def main() -> None:
    """Measure."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--against", type=Path, help="another checkout, measured in turns")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=1.0, help="of one round")
    options.add_argument("--only", default="", help="scenes with this in their names")
    chosen = options.parse_args()
    ports: multiprocessing.Queue[int] = multiprocessing.Queue()
    upstream = multiprocessing.Process(target=serve_upstream, args=(ports,), daemon=True)
    upstream.start()
    port = ports.get(timeout=30)
    trees = [HERE, *([chosen.against.resolve()] if chosen.against else [])]
    gateways = [Gateway(tree, port, 18_900 + place) for place, tree in enumerate(trees)]
    try:
        scenes = [scene for scene in SCENES if chosen.only in scene]
        compare(gateways, chosen.rounds, chosen.seconds, scenes)
    finally:
        for gateway in gateways:
            gateway.stop()
        upstream.terminate()


if __name__ == "__main__":
    main()
