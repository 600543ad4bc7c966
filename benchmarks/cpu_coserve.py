"""Both lanes on a real engine on the CPU, through the real gateway and dispatcher.

    make bench-cpu                  # the bundled worker
    make bench-cpu ENGINE=vllm      # a vLLM, which is installed into .interop

Starts the engine and ``headway serve``, measures how long a token takes alone, and runs ``headway
bench coserve`` with a load that suits the engine. Leaves a table, JSON and a picture in ``--out``.
Everything that it starts ends with it. Run it as a module, from the repository.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.gpu_coserve import KEY, POLICY, say, started, wait_for
from gateway.bench.load import Load, run_load
from gateway.bench.timing import Latency
from tests.interop.__main__ import FOLDER, own_vllm
from tests.support.ports import free_port

WORKER = "smollm2-135m-instruct"
VLLM = "smollm2"
# Rows in flight of the naive arm and of the static cap: what two cores work on, and a quarter.
FLOOD, CAP = 32, 8
# A gap between tokens may be so many times as long as that of a call alone.
STRETCH = 2.0
SLOTS, STEP_TOKENS = 64, 1024


@contextlib.contextmanager
def own_worker(out: Path) -> Iterator[str]:
    """The base URL of the bundled worker."""
    port = free_port()
    with started(out / "worker.log", "worker", "--device", "cpu", "--port", str(port)):
        wait_for(f"http://127.0.0.1:{port}/health", 120)
        yield f"http://127.0.0.1:{port}/v1"


@contextlib.contextmanager
def own_gateway(out: Path, engine: str, model: str, itl_target: float) -> Iterator[str]:
    """The base URL of a gateway whose only target is the engine."""
    port, policy = free_port(), out / "policy.yaml"
    base = POLICY.format(
        name=model, engine=engine.removesuffix("/v1"), kind="openai", extra="    priority: true"
    )
    batch = f"{{auto: true, itl_target: {1000 * itl_target:.0f}ms}}"
    policy.write_text(base.replace("batch: auto", f"batch: {batch}"))
    os.environ["HEADWAY_API_KEY"] = KEY  # noqa: TID251 - for the gateway that is started
    with tempfile.TemporaryDirectory() as data:
        serving = ("--policy", str(policy), "--data-dir", data, "--port", str(port))
        with started(out / "serve.log", "serve", *serving):
            wait_for(f"http://127.0.0.1:{port}/readyz", 60)
            yield f"http://127.0.0.1:{port}/v1"


def gap_alone(engine: str, model: str) -> float:
    """Seconds between tokens of calls that come one by one, once the engine is warm."""
    for calls in (2, 8):
        report = asyncio.run(run_load(Load(engine, model, "none", calls, 1, None, 16)))
    return Latency.of(report.timings).itl.p50


def coserve(engine: str, model: str, wanted: argparse.Namespace) -> int:
    """The arms; the exit code of the benchmark."""
    out = wanted.out
    gap = gap_alone(engine, model)
    target = STRETCH * gap
    say(f"A token alone takes {1000 * gap:.0f} ms; {1000 * target:.0f} ms are allowed")
    with own_gateway(out, engine, model, target) as gateway:
        command = [sys.executable, "-m", "gateway", "bench", "coserve", "--target", engine]
        command += ["--model", model, "--gateway", gateway, "--gateway-key", KEY, "--priority"]
        command += ["--share", str(wanted.share), "--chat", wanted.chat]
        command += ["--offline", wanted.offline, "--slo", str(wanted.slo)]
        command += ["--seconds", str(wanted.seconds), "--slices", str(wanted.slices)]
        command += ["--flood", str(FLOOD), "--cap", str(CAP), "--itl-target", f"{target:.4f}"]
        command += ["--price", str(wanted.price), "--max-num-seqs", str(SLOTS)]
        command += ["--max-num-batched-tokens", str(STEP_TOKENS)]
        command += ["--plot", str(out / "coserve.svg"), "--report", str(out / "coserve.json")]
        env = {"COLUMNS": "150", **os.environ}  # noqa: TID251 - for a process of ours
        done = subprocess.run(command, env=env, check=False)  # noqa: S603 - our own command
    say(f"{out}/coserve.json, {out}/coserve.svg")
    return done.returncode


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="make bench-cpu")
    parser.add_argument("engine", choices=("worker", "vllm"))
    parser.add_argument("--vllm", type=Path, default=FOLDER, help="folder with the installed vLLM")
    parser.add_argument("--out", type=Path, help="folder for what is found")
    parser.add_argument("--seconds", type=float, default=45, help="of an arm; there are seven")
    parser.add_argument("--slices", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.3, help="interactive part of the load")
    parser.add_argument("--chat", default="48:12", help="mean tokens in and out")
    parser.add_argument("--offline", default="96:24", help="the same of a row")
    parser.add_argument("--slo", type=float, default=2, help="times the p95 alone")
    parser.add_argument("--price", type=float, default=0.1, help="an example, an hour")
    wanted = parser.parse_args()
    # An end from outside is an end of all that runs here.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    wanted.out = wanted.out or Path("build", f"coserve-{wanted.engine}")
    wanted.out.mkdir(parents=True, exist_ok=True)
    if wanted.engine == "worker":
        with own_worker(wanted.out) as url:
            return coserve(url, WORKER, wanted)
    flags = ("--scheduling-policy", "priority", "--max-num-seqs", str(SLOTS))
    steps = ("--max-num-batched-tokens", str(STEP_TOKENS))
    with own_vllm(*flags, *steps, folder=wanted.vllm) as url:
        return coserve(url, VLLM, wanted)


if __name__ == "__main__":
    sys.exit(main())
