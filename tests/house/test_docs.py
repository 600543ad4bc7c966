"""What the documentation says is so."""

import re
import tomllib
from pathlib import Path

import pytest

from gateway.policy import lanes, model, target
from gateway.policy.loader import load_policy
from gateway.policy.model import Policy
from gateway.policy.values import PolicyModel
from tests.support.docs import PAGES, ROOT, Block, blocks, links, table
from tests.support.settings_table import PAGE, page_with_table

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MODELS = [
    value for value in {**vars(lanes), **vars(target), **vars(model)}.values()
    if isinstance(value, type) and issubclass(value, PolicyModel) and value is not PolicyModel
]  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """No relative link or picture is broken."""
    assert not [target for target in links(page) if not target.exists()]


@pytest.mark.parametrize("block", blocks("policy"), ids=str)
def test_policy_examples_load(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every policy in the documentation is accepted as it stands."""
    for name in re.findall(r"\$\{(\w+)\}", block.text):
        monkeypatch.setenv(name, "whsec_MDEyMzQ1Njc4OWFiY2RlZg==")
    path = tmp_path / "policy.yaml"
    path.write_text(block.text)
    assert isinstance(load_policy(path), Policy)


def test_the_shortest_policy_has_four_lines() -> None:
    """The promise of the first screen."""
    readme = [block for block in blocks("policy") if block.page == "README.md"]
    assert [len(block.text.splitlines()) for block in readme] == [4]


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
def test_the_policy_page_names_every_key(kind: type[PolicyModel]) -> None:
    """Nothing can be set that is not written down."""
    page = (ROOT / "docs" / "policy.md").read_text()
    assert not [name for name in kind.model_fields if not re.search(rf"\b{name}\b", page)]


def test_the_settings_page_is_up_to_date() -> None:
    """``python -m tests.support.settings_table`` writes it anew."""
    page = PAGE.read_text()
    assert page == page_with_table(page)


def test_the_structure_page_shows_the_layers_that_are_enforced() -> None:
    """Its rows are those of import-linter, top to bottom."""
    layers = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    enforced = [sorted(layer.split(" | ")) for layer in layers]
    shown = [re.findall(r"`(\w+)`", row[1]) for row in table(ROOT / "docs/structure.md", "row")]
    assert [sorted(row) for row in shown] == enforced


def test_the_structure_page_has_a_line_for_every_package() -> None:
    """No package without its job, no job without its package."""
    shown = {row[0].strip("`") for row in table(ROOT / "docs/structure.md", "package")}
    packages = {path.parent.name for path in (ROOT / "gateway").glob("*/__init__.py")}
    assert shown == packages


def test_the_journeys_lead_through_files_that_exist() -> None:
    """Every file named in the structure page is there."""
    page = (ROOT / "docs" / "structure.md").read_text()
    named = re.findall(r"`(\w+/\w+\.py)`", page)
    assert named
    assert not [name for name in named if not (ROOT / "gateway" / name).exists()]


def test_the_first_screen_is_one_screen() -> None:
    """Install, four lines and the commands come before any long example."""
    head = (ROOT / "README.md").read_text().split("## Use it")[0]
    assert len(head.splitlines()) <= 45
    for expected in ("pip install", "headway serve", "make demo", "make test", "lanes.svg"):
        assert expected in head


def test_decisions_are_numbered_without_gaps() -> None:
    """docs/adr/0001-…, 0002-…, each with its number and a decision inside."""
    pages = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    for number, page in enumerate(pages, start=1):
        assert page.read_text().startswith(f"# {number}. ")
        assert "**Decision.**" in page.read_text()
