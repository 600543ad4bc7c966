"""The official npm package, installed once and kept beside the environment."""

import subprocess
from pathlib import Path

from tests.support.once import made_once

OPENAI = "openai@7.59.0"


def node_modules() -> Path:
    """Path of a ``node_modules`` that holds ``openai``."""
    return made_once("headway-tests-node", OPENAI.replace("@", "-"), _install) / "node_modules"


def _install(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}')
    command = ["npm", "install", "--no-audit", "--no-fund", "--silent", OPENAI]
    subprocess.run(command, cwd=folder, check=True, timeout=90)
