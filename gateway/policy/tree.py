"""YAML text as plain values that remember their lines."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gateway.core.errors import ConfigError

Place = tuple[str | int, ...]
_STRING = "tag:yaml.org,2002:str"
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Tree:
    """Plain values and the line (from 1) of each member, by its path from the root."""

    file: Path
    values: Any
    lines: dict[Place, int] = field(default_factory=dict)

    def line(self, place: Place) -> int:
        """The line of ``place``, or of the nearest thing around it that was written."""
        for length in range(len(place), 0, -1):
            if place[:length] in self.lines:
                return self.lines[place[:length]]
        return 1

    def fault(self, place: Place, message: str) -> ConfigError:
        """An error that names file, line and path."""
        return ConfigError(f"{spelled(place)}{message}", file=self.file, line=self.line(place))


def spelled(place: Place) -> str:
    """``targets.vllm.models[0]: ``; nothing for the root."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return f"{_UNPRINTABLE.sub('?', text.lstrip('.'))}: " if text else ""


def read_tree(file: Path, text: str, expand: Callable[[str], str]) -> Tree:
    """Parse ``text``; ``expand`` is applied to every string value (not to keys).

    ``expand`` raises ValueError with the reason. Raises ConfigError with file and line for broken
    YAML, a key given twice, a tag that is no plain value, and what ``expand`` refuses.
    """
    try:
        loader = yaml.SafeLoader(text)
        return _Reader(file, loader, expand).read(loader.get_single_node())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "not YAML"
        raise ConfigError(problem, file=file, line=mark.line + 1 if mark else None) from None
    except yaml.YAMLError:
        raise ConfigError("not YAML: a character that may not occur", file=file) from None


class _Reader:
    def __init__(self, file: Path, loader: yaml.SafeLoader, expand: Callable[[str], str]) -> None:
        self._tree = Tree(file, None)
        self._loader = loader
        self._expand = expand
        self._around: set[int] = set()

    def read(self, root: yaml.Node | None) -> Tree:
        values = None if root is None else self._value(root, ())
        return Tree(self._tree.file, values, self._tree.lines)

    def _value(self, node: yaml.Node, place: Place) -> Any:
        self._tree.lines.setdefault(place, node.start_mark.line + 1)
        if id(node) in self._around:
            raise self._tree.fault(place, "an alias that contains itself")
        self._around.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, place)
            if isinstance(node, yaml.SequenceNode):
                return [self._value(item, (*place, i)) for i, item in enumerate(node.value)]
            return self._scalar(node, place)
        finally:
            self._around.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError("a key must be plain text", file=self._tree.file, line=line)
            key = str(key_node.value)
            inner = (*place, key)
            if key in values:
                raise ConfigError(
                    f"{spelled(inner)}given twice, first in line {self._tree.lines[inner]}",
                    file=self._tree.file,
                    line=line,
                )
            self._tree.lines[inner] = line
            values[key] = self._value(value_node, inner)
        return values

    def _scalar(self, node: yaml.Node, place: Place) -> Any:
        try:
            value = self._loader.construct_object(node)
        except ValueError:
            raise self._tree.fault(place, "not a value that can be read") from None
        if node.tag != _STRING or "$" not in value:
            return value
        try:
            return self._expand(value)
        except ValueError as error:
            raise self._tree.fault(place, str(error)) from None
