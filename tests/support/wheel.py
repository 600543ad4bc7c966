"""Headway as a user gets it: a wheel, installed in an environment with nothing else."""

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build_wheel(folder: Path) -> Path:
    """The wheel of this tree, built with the tools that are installed."""
    pip("wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT))
    (wheel,) = folder.glob("headway-*.whl")
    return wheel


def empty_environment(folder: Path, wheel: Path, extra: str) -> Path:
    """A fresh virtual environment with the wheel and one extra; returns its Python."""
    venv.create(folder, with_pip=False)
    pip("--python", str(folder), "install", "--no-compile", f"{wheel}[{extra}]")
    return folder / "bin" / "python"


def pip(*argv: str, timeout: float = 280) -> None:
    """Run pip; its output is shown only when it fails."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *argv]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr
