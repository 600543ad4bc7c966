"""The table of docs/settings.md. ``python -m tests.support.settings_table`` writes it anew."""

from pathlib import Path
from typing import get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from gateway.core.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
START, END = "<!-- table -->\n", "<!-- end -->\n"


def table() -> str:
    """One row per setting: variable, default, meaning."""
    rows = [
        f"| `HEADWAY_{name.upper()}` | {_default(field)} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| variable | default | meaning |", "| --- | --- | --- |", *rows]) + "\n"


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is PydanticUndefined or value is None or value == "":
        return "-"
    if SecretStr in get_args(field.annotation):
        return "-"
    return f"`{str(value).replace(str(Path.home()), '~')}`"


def page_with_table(page: str) -> str:
    """``page`` with its table replaced by the present one."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return before + START + table() + END + after


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text()))
