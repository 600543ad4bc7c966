"""Other people's batch clients, in an environment of their own, made once and kept.

They want another major version of ``openai`` than we test with, so they cannot share ours.
"""

import json
import subprocess
import venv
from pathlib import Path
from typing import Any

from tests.support.once import made_once
from tests.support.serve import RunningHeadway, clean_environment
from tests.support.wheel import pip

CLIENTS = ("autobatcher==0.12.0", "instructor==1.17.0", "openai==2.54.0")


def clients_python() -> Path:
    """Python of the environment that holds ``CLIENTS``."""
    stamp = "-".join(name.replace("==", "-") for name in CLIENTS)
    return made_once("headway-tests-clients", stamp, _install) / "bin" / "python"


def _install(folder: Path) -> None:
    venv.create(folder, with_pip=False, clear=True)
    pip("--python", str(folder), "install", "--no-compile", *CLIENTS)


def run_client(code: str, running: RunningHeadway, folder: Path) -> Any:
    """Run a program that finds the gateway in OpenAI's variables; the JSON it prints last."""
    env = {
        **clean_environment(),
        "OPENAI_BASE_URL": running.base_url,
        "OPENAI_API_KEY": running.key,
        "PYTHONPATH": "",
    }
    done = subprocess.run(
        [clients_python(), "-c", code],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])
