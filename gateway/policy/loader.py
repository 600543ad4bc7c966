"""From a YAML file to a policy, with file and line for every fault."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from gateway.core.errors import ConfigError
from gateway.core.settings import read_variable
from gateway.policy.describe import describe
from gateway.policy.faults import explain
from gateway.policy.model import Policy
from gateway.policy.odd import at_odds, odd_numbers
from gateway.policy.references import bad_references, empty_secrets
from gateway.policy.tree import Place, Tree, read_tree
from gateway.policy.variables import expand

__all__ = ["builtin_policies", "describe", "load_policy"]

_DEFAULT = "default"


def load_policy(path: Path | None) -> Policy:
    """The policy in ``path``; None: the built-in default, which names no upstream.

    Raises ConfigError; each fault is one line that starts with file and line.
    """
    file = builtin_policies()[_DEFAULT] if path is None else path
    tree = read_tree(file, _text(file), lambda text: expand(text, read_variable))
    if not tree.values:
        raise ConfigError("the policy is empty: targets is missing", file=file)
    if not isinstance(tree.values, dict):
        raise ConfigError("a policy is a mapping that begins with targets", file=file, line=1)
    _refuse(tree, empty_secrets(tree.values))
    _refuse(tree, odd_numbers(tree.values))
    try:
        policy = Policy.model_validate(tree.values)
    except ValidationError as error:
        _refuse(tree, [explain(detail) for detail in error.errors(include_input=False)])
        raise
    _refuse(tree, [*bad_references(policy), *at_odds(policy)])
    return policy


def builtin_policies() -> dict[str, Path]:
    """Name → file of the policies that come with Headway."""
    package = Path(__file__).parent.parent
    # Installed, they lie inside the package; in the source tree, beside it.
    for folder in (package / "policies", package.parent / "policies"):
        found = {file.stem: file for file in sorted(folder.glob("*.yaml"))}
        if _DEFAULT in found:
            return found
    raise ConfigError("the built-in policies are missing: install Headway again")


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError("not UTF-8 text", file=file) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=file) from None


def _refuse(tree: Tree, faults: Iterable[tuple[Place, str]]) -> None:
    errors = [tree.fault(place, message) for place, message in faults]
    if not errors:
        return
    first = min(errors, key=lambda error: error.line or 0)
    rest = sorted((e for e in errors if e is not first), key=lambda error: error.line or 0)
    text = str(first).removeprefix(f"{tree.file}:{first.line}: ")
    more = "".join(f"\n{error}" for error in rest)
    raise ConfigError(text + more, file=tree.file, line=first.line)
