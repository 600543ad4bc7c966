"""Other people's clients, each in an environment of its own, made once and kept.

They want other versions of ``openai`` than we test with, and each its own, so none shares ours.
"""

import json
import subprocess
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.support.once import made_once
from tests.support.serve import RunningHeadway, clean_environment
from tests.support.wheel import pip

BATCH_CLIENTS = ("autobatcher==0.12.0", "instructor==1.17.0", "openai==2.54.0")
_UNREACHABLE = ("No matching distribution", "Could not find a version", "Connection", "timed out")


def clients_python(name: str, packages: tuple[str, ...]) -> Path:
    """Python of the environment ``name``, which holds ``packages``.

    Skips the test when they are not there and no package index has them.
    """
    stamp = "-".join(package.replace("==", "-") for package in packages)
    folder = made_once(f"headway-tests-{name}", stamp, lambda place: _install(place, packages))
    return folder / "bin" / "python"


def _install(folder: Path, packages: tuple[str, ...]) -> None:
    venv.create(folder, with_pip=False, clear=True)
    try:
        pip("--python", str(folder), "install", "--no-compile", *packages, timeout=600)
    except AssertionError as error:
        if any(word in str(error) for word in _UNREACHABLE):
            pytest.skip(f"no package index has {', '.join(packages)}")
        raise


def run_client(
    code: str,
    running: RunningHeadway,
    folder: Path,
    *,
    name: str = "clients",
    packages: tuple[str, ...] = BATCH_CLIENTS,
) -> Any:
    """Run a program that finds the gateway in OpenAI's variables; the JSON it prints last."""
    env = {
        **clean_environment(),
        "OPENAI_BASE_URL": running.base_url,
        "OPENAI_API_KEY": running.key,
        "PYTHONPATH": "",
    }
    return run_program([str(clients_python(name, packages)), "-c", code], env, folder)


def run_program(command: list[str], env: dict[str, str], folder: Path) -> Any:
    """The JSON that a program prints last."""
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])
