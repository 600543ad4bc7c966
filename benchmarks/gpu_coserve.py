"""Both lanes on the bundled worker on one GPU, through the real gateway and dispatcher.

    python benchmarks/gpu_coserve.py --model shape:llama-3-8b --seconds 70 --cap 64

Starts ``headway worker`` and ``headway serve``, runs ``headway bench coserve`` against them and
prints a table with an arm a column.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

KEY = "sk-bench-0123456789abcdef0123456789abcdef"
NAME = "bench"
ENGINE = "http://127.0.0.1:8101"
GATEWAY = "http://127.0.0.1:8100"
FIGURES = (
    ("ttft_p50", 0),
    ("ttft_p95", 0),
    ("ttft_p99", 0),
    ("interference", 2),
    ("itl_p50", 1),
    ("itl_p99", 1),
    ("slo", 3),
    ("job_start", 0),
    ("interactive_tokens", 0),
    ("offline_tokens", 0),
    ("harvest", 3),
    ("calls", 0),
)
WORKER = """
targets:
  engine:
    kind: local
    models: [{name}]
    worker: {{rows: {rows}, reserved_rows: 8, context: 16640, prefill_chunk: {chunk}}}
"""
POLICY = """
targets:
  engine:
    kind: {kind}
    base_url: {engine}/v1
    models: [{name}]
    lanes:
      interactive: {{max_in_flight: 1024}}
      batch: auto
{extra}
"""


def say(text: str) -> None:
    """One line, at once."""
    print(text, flush=True)  # noqa: T201


@contextlib.contextmanager
def started(log: Path, *argv: str) -> Iterator[None]:
    """A process of the product, until the end of the block."""
    with log.open("wb") as file:
        process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "gateway", *argv], stdout=file, stderr=file
        )
    try:
        yield
    except BaseException:
        say(f"--- {log.name}: {log.read_text()[-3000:]}")
        raise
    finally:
        process.terminate()
        process.wait(30)


def wait_for(url: str, seconds: float) -> None:
    """Until the address answers."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - our own process
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def coserve(wanted: argparse.Namespace) -> None:
    """The arms, as a table."""
    out = Path(os.environ.get("OUT", tempfile.mkdtemp()))  # noqa: TID251 - where results go
    os.environ["HEADWAY_API_KEY"] = KEY  # noqa: TID251 - for the gateway that is started
    worker, policy = out / "worker.yaml", out / "policy.yaml"
    worker.write_text(WORKER.format(name=NAME, rows=wanted.rows, chunk=wanted.chunk))
    extra = "    priority: true" if wanted.priority else ""
    policy.write_text(POLICY.format(name=NAME, engine=ENGINE, kind="openai", extra=extra))
    serving = ("--data-dir", tempfile.mkdtemp(), "--port", GATEWAY.rsplit(":", 1)[1])
    engine = (
        "--model",
        wanted.model,
        "--device",
        wanted.device,
        "--port",
        ENGINE.rsplit(":", 1)[1],
    )
    began = time.monotonic()
    with (
        started(out / "worker.log", "worker", "--policy", str(worker), *engine),
        started(out / "serve.log", "serve", "--policy", str(policy), *serving),
    ):
        wait_for(f"{GATEWAY}/readyz", 60)
        wait_for(f"{ENGINE}/health", 180)
        say(f"engine and gateway answer after {time.monotonic() - began:.0f} s")
        command = [sys.executable, "-m", "gateway", "bench", "coserve", "--json"]
        command += ["--target", f"{ENGINE}/v1", "--model", NAME, "--rate", str(wanted.rate)]
        command += ["--seconds", str(wanted.seconds), "--slices", str(wanted.slices)]
        command += ["--cap", str(wanted.cap), "--gateway", f"{GATEWAY}/v1", "--gateway-key", KEY]
        command += ["--priority"] if wanted.priority else []
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)  # noqa: S603 - ours
        show(json.loads(done.stdout))
        (out / "coserve.json").write_bytes(done.stdout)
        with urllib.request.urlopen(f"{ENGINE}/metrics", timeout=5) as answer:  # noqa: S310
            say(" ".join(line for line in answer.read().decode().split("\n") if line[:1] != "#"))
        say(f"--- worker.log: {(out / 'worker.log').read_text()[-1500:]}")
        say(f"--- serve.log: {(out / 'serve.log').read_text()[-1500:]}")


def show(report: dict[str, dict[str, dict[str, dict[str, dict[str, float] | None]]]]) -> None:
    """One line a figure, one column an arm."""
    arms = next(iter(report["scenes"].values()))
    say("  ".join(["figure".ljust(18), *(arm.rjust(24) for arm in arms)]))
    for name, digits in FIGURES:
        cells = []
        for figures in arms.values():
            spread = figures.get(name)
            if spread is None:
                cells.append("-".rjust(24))
                continue
            low, mean, high = (f"{spread[key]:.{digits}f}" for key in ("low", "mean", "high"))
            cells.append((mean if low == high else f"{mean} ({low}-{high})").rjust(24))
        say("  ".join([name.ljust(18), *cells]))
    say(json.dumps(report.get("advice")))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="shape:llama-3-8b")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=70)
    parser.add_argument("--slices", type=int, default=1)
    parser.add_argument("--rate", type=float, default=5.04)
    parser.add_argument("--cap", type=int, default=64)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--chunk", type=int, default=2048)
    parser.add_argument("--priority", action="store_true")
    coserve(parser.parse_args())


if __name__ == "__main__":
    main()
