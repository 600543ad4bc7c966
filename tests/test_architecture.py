"""The limits the code base holds itself to."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "gateway").rglob("*.py"))
SCRIPTS = sorted((ROOT / "gateway").rglob("*.lua"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MAX_FILE = 300
MAX_FUNCTION = 50
VAGUE = {"utils", "helpers", "common", "manager", "handler2", "data", "info", "misc"}


@pytest.mark.parametrize(
    "path", [*SOURCES, *SCRIPTS, *TESTS], ids=lambda p: str(p.relative_to(ROOT))
)
def test_no_file_is_over_300_lines(path: Path) -> None:
    """One job per file: a file that grows past 300 lines has two."""
    assert len(path.read_text().splitlines()) <= MAX_FILE


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_function_is_over_50_lines(path: Path) -> None:
    """A function fits on a screen."""
    long = [
        f"{node.name}:{node.lineno}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno + 1 > MAX_FUNCTION
    ]
    assert not long


def test_names_say_something() -> None:
    """No file is named after what it might contain."""
    assert not [path for path in SOURCES if path.stem in VAGUE]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_each_source_file_has_a_test_file(path: Path) -> None:
    """Tests mirror the source: gateway/a/b.py is tested in tests/a/test_b.py or test_b_*.py."""
    relative = path.relative_to(ROOT / "gateway")
    if path.name in {"__init__.py", "__main__.py"}:
        return
    folder = ROOT / "tests" / relative.parent
    assert list(folder.glob(f"test_{path.stem}.py")) + list(folder.glob(f"test_{path.stem}_*.py"))


@pytest.mark.parametrize("path", TESTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_each_test_says_what_it_expects(path: Path) -> None:
    """A test's docstring states the behaviour, so that a failure reads as a sentence."""
    silent = [
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert not silent


def test_nothing_knows_where_it_was_built() -> None:
    """No file names a folder of the machine it was written on."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    texts = [ROOT / name for name in tracked if name and Path(name).suffix not in {".svg", ".png"}]
    here = re.compile(r"(?<![\w/])/work/|\.\./shared|/home/\w+/")
    found = [
        path.name
        for path in texts
        if path.exists() and path != Path(__file__) and here.search(path.read_text())
    ]
    assert not found
