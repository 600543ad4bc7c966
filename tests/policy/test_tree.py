"""YAML with lines."""

from pathlib import Path

import pytest

from gateway.core.errors import ConfigError
from gateway.policy.tree import Tree, read_tree, spelled

FILE = Path("p.yaml")


def read(text: str) -> Tree:
    """Without variables."""
    return read_tree(FILE, text, lambda value: value)


def test_values_and_lines() -> None:
    """Every member knows its line; what is missing has that of its surroundings."""
    tree = read("a:\n  b: 1\n  c:\n    - x\n    - 2.5\n")
    assert tree.values == {"a": {"b": 1, "c": ["x", 2.5]}}
    assert tree.line(("a", "c", 1)) == 5
    assert tree.line(("a", "b", "nothing")) == 2
    assert tree.line(("z",)) == 1


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: [1\nb: 2\n", "p.yaml:2:"),
        ("a: 1\n\tb: 2\n", "p.yaml:2:"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "p.yaml:4: b.c: given twice, first in line 3"),
        ("? [a]\n: 1\n", "p.yaml:1: a key must be plain text"),
        ("a: &x\n  b: *x\n", "p.yaml:2: a.b: an alias that contains itself"),
        ("a: !!python/name:os.system x\n", "p.yaml:1:"),
        ("a: 2026-99-99\n", "p.yaml:1: a: not a value"),
        ("a: \x00\n", "p.yaml: not YAML"),
        ("a: *nothing\n", "p.yaml:1:"),
    ],
)
def test_faults_name_their_line(text: str, place: str) -> None:
    """Broken YAML, a key given twice, aliases in circles, tags."""
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert str(caught.value).startswith(place)


def test_expansion_is_for_text_values_only() -> None:
    """Keys stay as they are; a refusal gets file, line and path."""

    def refuse(text: str) -> str:
        raise ValueError(f"no {text}")

    assert read_tree(FILE, "$k: 1\n", refuse).values == {"$k": 1}
    with pytest.raises(ConfigError, match=r"^p\.yaml:2: a\.b: no \$x$"):
        read_tree(FILE, "a:\n  b: $x\n", refuse)


def test_paths_are_spelled_without_control_characters() -> None:
    """A key from a file cannot break a log line."""
    assert spelled(("a", 0, "b\nc")) == "a[0].b?c: "
    assert spelled(()) == ""
