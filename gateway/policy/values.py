"""What every part of a policy is made of."""

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")


def seconds(value: object) -> object:
    """``250ms`` → 0.25. Numbers pass; other text is left for the validator to refuse."""
    if isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
        return float(match[1]) * _UNITS[match[2]]
    return value


#: Longer than anything here waits or runs.
LONGEST = 366 * _UNITS["d"]

Duration = Annotated[float, BeforeValidator(seconds), Field(ge=0, le=LONGEST)]


class PolicyModel(BaseModel):
    """Base: frozen, unknown keys refused, no number without end."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
