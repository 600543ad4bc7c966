"""The documentation as data: marked code blocks, links, tables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))

_BLOCK = re.compile(
    r"^<!-- (?P<mark>[a-z: ]+) -->\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


@dataclass(frozen=True)
class Block:
    """A fenced block below a mark such as ``<!-- test: sh -->``."""

    page: str
    line: int
    mark: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(mark: str) -> list[Block]:
    """Every block below this mark."""
    return [block for page in PAGES for block in _blocks(page) if block.mark == mark]


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Block(str(page.relative_to(ROOT)), line, match["mark"], match["text"])


def links(page: Path) -> list[Path]:
    """Where the relative links and pictures of a page lead."""
    return [page.parent / target for target in _LINK.findall(page.read_text())]


def table(page: Path, first: str) -> list[list[str]]:
    """Rows of the first table whose header starts with ``first``, cells stripped."""
    rows: list[list[str]] = []
    inside = False
    for text in page.read_text().splitlines():
        cells = [cell.strip() for cell in text.strip("|").split("|")] if text[:1] == "|" else []
        if inside and not cells:
            break
        if inside and not set(cells[0]) <= {"-", " "}:
            rows.append(cells)
        inside = inside or cells[:1] == [first]
    return rows
