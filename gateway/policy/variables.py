"""``${NAME}`` and ``${NAME:-default}`` inside the strings of a policy."""

import re
from collections.abc import Callable

_VARIABLE = re.compile(r"\$\$|\$\{([^}]*)\}|\$\{")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


def expand(text: str, read: Callable[[str], str | None]) -> str:
    """``text`` with its variables filled in; ``$$`` is a dollar sign.

    A default is used when the variable is unset or empty. Raises ValueError naming the variable
    that is unset and has no default.
    """

    def fill(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        parts = _NAME.fullmatch(match[1] or "")
        if parts is None:
            raise ValueError("a variable is written ${NAME} or ${NAME:-default}")
        value = read(parts[1])
        if parts[2] is not None:
            return value or parts[2]
        if value is None:
            raise ValueError(f"environment variable {parts[1]} is not set")
        return value

    return _VARIABLE.sub(fill, text)
