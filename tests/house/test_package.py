"""The wheel, installed in an empty environment, starts and serves."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from gateway import __version__
from tests.support.serve import headway, one_target
from tests.support.upstream import ScriptedUpstream
from tests.support.wheel import ROOT, build_wheel, empty_environment

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of an environment that holds the wheel and its extra ``embedded`` alone."""
    return empty_environment(tmp_path_factory.mktemp("empty") / "venv", wheel, "embedded")


def test_the_wheel_holds_what_it_needs_and_nothing_else(wheel: Path) -> None:
    """Policies, Lua scripts and the type marker are inside; tests are not."""
    names = set(zipfile.ZipFile(wheel).namelist())
    for policy in (ROOT / "policies").glob("*.yaml"):
        assert f"gateway/policies/{policy.name}" in names
    for script in (ROOT / "gateway").rglob("*.lua"):
        assert str(script.relative_to(ROOT)) in names
    assert "gateway/py.typed" in names
    tops = {name.split("/")[0] for name in names}
    assert tops == {"gateway", f"headway-{__version__}.dist-info"}


def test_without_the_extra_there_is_no_torch(python: Path) -> None:
    """The gateway's environment has no torch in it, and its policies load."""
    code = "import importlib.util as u; print(u.find_spec('torch'), u.find_spec('openai'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "None"]
    code = "from gateway.policy.loader import builtin_policies; print(*builtin_policies())"
    done = subprocess.run([python, "-c", code], cwd="/", capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["default", "interactive-first", "throughput-first"]


def test_it_starts_and_serves(python: Path, tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """With the embedded queue server, over HTTP, with nothing of this tree on its path."""
    command = [str(python.with_name("headway"))]
    with (
        headway(tmp_path, one_target(upstream.url), command=command) as running,
        running.client() as client,
    ):
        body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
        answer = client.post("/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        assert client.get("/batches").status_code == 200
