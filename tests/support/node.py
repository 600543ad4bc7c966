"""The official npm package, installed once and kept beside the environment."""

import subprocess
import sys
from pathlib import Path

OPENAI = "openai@7.59.0"


def node_modules() -> Path:
    """Path of a ``node_modules`` that holds ``openai``."""
    folder = Path(sys.prefix) / "share" / "headway-tests-node"
    stamp = folder / OPENAI.replace("@", "-")
    if not stamp.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        command = ["npm", "install", "--no-audit", "--no-fund", "--silent", OPENAI]
        subprocess.run(command, cwd=folder, check=True, timeout=90)
        stamp.touch()
    return folder / "node_modules"
