"""What the endpoints that run a model have in common: reading a body and checking its members."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import orjson

from gateway.core.errors import InvalidRequest, InvalidType, MissingParameter
from gateway.core.exact_json import with_long_integers
from gateway.core.large_json import LARGE, TooManyValues, read_large
from gateway.core.nesting import MOST_LEVELS, is_depth_fault, too_deep
from gateway.core.usage import MOST_TOKENS
from gateway.core.values import value

Check = Callable[[str, Any], None]
TIERS = ("auto", "default", "flex", "scale", "priority", "fast")
LONGEST_ANSWER = 2**31 - 1
#: Of a large body, in one part that cannot be read in pieces: that takes about 50 ms.
_MOST_VALUES = 1_000_000
_METADATA_PAIRS, _METADATA_KEY, _METADATA_VALUE = 16, 64, 512


@value
class ModelRequest:
    """A checked request. ``members`` is the body as it came.

    ``items`` is the number of prompts or inputs, ``choices`` how many answers come back,
    ``prompt_bytes`` the length of the body, ``max_completion`` the most tokens of all choices
    together as far as the request says, else 0; MOST_TOKENS at most.
    """

    members: dict[str, Any]
    model: str
    stream: bool
    wants_usage: bool
    items: int
    choices: int
    prompt_bytes: int
    max_completion: int
    tier: str | None


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises InvalidRequest when it is anything else."""
    try:
        if len(body) > LARGE:
            value, deep = read_large(body, _exactly, _MOST_VALUES)
        else:
            value = orjson.loads(body)
            deep = too_deep(body, value)
            value = with_long_integers(body, value)
    except TooManyValues:
        raise InvalidRequest(
            f"The body of the request has more than {_MOST_VALUES} values in one array.",
            code="too_many_parts",
        ) from None
    except ValueError as error:
        if isinstance(error, orjson.JSONDecodeError) and is_depth_fault(error):
            raise _too_deep() from None
        raise InvalidRequest(
            "We could not parse the JSON body of your request. The body must be valid JSON in "
            "UTF-8."
        ) from None
    if not isinstance(value, dict):
        raise InvalidRequest("The body of the request must be a JSON object.")
    if deep:
        raise _too_deep()
    return value


def _exactly(body: bytes) -> Any:
    return with_long_integers(body, orjson.loads(body))


def build(
    members: dict[str, Any], checks: Mapping[str, Check], size: int, items: int
) -> ModelRequest:
    """Check what every endpoint shares and ``checks``, and give the request its form.

    A member that is null counts as not given. Raises InvalidRequest and its kinds.
    """
    model = required_text(members, "model")
    if not model:
        raise InvalidRequest("'model' must not be empty.", param="model", code="invalid_value")
    for name, member in members.items():
        check = checks.get(name)
        if check is not None and member is not None:
            check(name, member)
    stream = bool(members.get("stream"))
    n = members.get("n") or 1
    limit = members.get("max_completion_tokens") or members.get("max_tokens") or 0
    return ModelRequest(
        members,
        model,
        stream,
        _wants_usage(members, stream=stream),
        items,
        n * items,
        size,
        min(limit * n * items, MOST_TOKENS),
        members.get("service_tier"),
    )


def required(members: Mapping[str, Any], name: str) -> Any:
    """The member ``name``. Raises MissingParameter when it is absent or null."""
    value = members.get(name)
    if value is None:
        missing(name)
    return value


def required_text(members: Mapping[str, Any], name: str) -> str:
    """The string ``name``. Raises MissingParameter and InvalidType."""
    value = members.get(name)
    if not isinstance(value, str):
        no_text(name, value)
    return value


def missing(name: str) -> NoReturn:
    """Raise MissingParameter for ``name``."""
    raise MissingParameter(f"Missing required parameter: '{name}'.", param=name)


def wrong_type(name: str, wanted: str) -> NoReturn:
    """Raise InvalidType for ``name``."""
    raise InvalidType(f"Invalid type for '{name}': expected {wanted}.", param=name)


def no_text(name: str, value: Any) -> NoReturn:
    """Raise for ``name``, which must be a string: it is absent, or of another type."""
    if value is None:
        missing(name)
    wrong_type(name, "a string")


def between(low: float, high: float | None, *, whole: bool = False) -> Check:
    """A check for a number within bounds; ``whole`` for an integer."""
    kind = "integer" if whole else "decimal"
    accepted = (int,) if whole else (int, float)

    def check(name: str, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, accepted):
            wrong_type(name, "an integer" if whole else "a number")
        if value < low:
            _out_of_range(name, f"at least {low}", f"{kind}_below_min_value")
        if high is not None and value > high:
            _out_of_range(name, f"at most {high}", f"{kind}_above_max_value")

    return check


def boolean(name: str, value: Any) -> None:
    """A check for true or false."""
    if not isinstance(value, bool):
        wrong_type(name, "a boolean")


def text(name: str, value: Any) -> None:
    """A check for a string."""
    if not isinstance(value, str):
        wrong_type(name, "a string")


def stop(name: str, value: Any) -> None:
    """A check for a string or up to four of them."""
    if isinstance(value, str):
        return
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        wrong_type(name, "a string or an array of strings")
    if len(value) > 4:  # noqa: PLR2004 - the API's own limit
        raise InvalidRequest(
            f"'{name}' may have at most 4 strings.", param=name, code="array_above_max_length"
        )


def one_of(*values: str) -> Check:
    """A check for one of some texts."""

    def check(name: str, value: Any) -> None:
        text(name, value)
        if value not in values:
            raise InvalidRequest(
                f"Invalid value for '{name}': must be one of {', '.join(values)}.",
                param=name,
                code="invalid_value",
            )

    return check


def metadata(name: str, value: Any) -> None:
    """A check for up to 16 pairs of short texts."""
    if not isinstance(value, dict):
        wrong_type(name, "an object")
    if len(value) > _METADATA_PAIRS:
        raise InvalidRequest(
            f"'{name}' may have at most {_METADATA_PAIRS} pairs.", param=name, code="invalid_value"
        )
    for key, item in value.items():
        if not isinstance(item, str):
            raise InvalidType(
                f"Invalid type for '{name}.{key}': expected a string.", param=f"{name}.{key}"
            )
        if len(key) > _METADATA_KEY or len(item) > _METADATA_VALUE:
            raise InvalidRequest(
                f"'{name}' keys may have {_METADATA_KEY} and values {_METADATA_VALUE} characters.",
                param=name,
                code="invalid_value",
            )


#: Checks of members that chat and completions share.
SAMPLING: Mapping[str, Check] = {
    "stream": boolean,
    "n": between(1, 128, whole=True),
    "temperature": between(0, 2),
    "top_p": between(0, 1),
    "presence_penalty": between(-2, 2),
    "frequency_penalty": between(-2, 2),
    "stop": stop,
    "user": text,
    "service_tier": one_of(*TIERS),
    "metadata": metadata,
}


def count_prompts(name: str, value: Any) -> int:
    """Prompts in a string, an array of strings, a token array or an array of token arrays."""
    if isinstance(value, str):
        return 1
    if not isinstance(value, list):
        wrong_type(name, "a string or an array")
    if not value:
        raise InvalidRequest(f"'{name}' must not be empty.", param=name, code="invalid_value")
    first = value[0]
    if isinstance(first, str) and all(isinstance(item, str) for item in value):
        return len(value)
    if _tokens(value):
        return 1
    if all(isinstance(item, list) and item and _tokens(item) for item in value):
        return len(value)
    return wrong_type(name, "strings, or arrays of token numbers")


def _tokens(value: list[Any]) -> bool:
    return all(type(item) is int and item >= 0 for item in value)


def _wants_usage(members: Mapping[str, Any], *, stream: bool) -> bool:
    options = members.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict):
        wrong_type("stream_options", "an object")
    if not stream:
        raise InvalidRequest(
            "'stream_options' is only allowed when 'stream' is true.",
            param="stream_options",
            code="invalid_value",
        )
    return bool(options.get("include_usage"))


def _too_deep() -> InvalidRequest:
    return InvalidRequest(
        f"The body of the request is nested too deeply: it may have {MOST_LEVELS} levels."
    )


def _out_of_range(name: str, bound: str, code: str) -> NoReturn:
    raise InvalidRequest(f"Invalid value for '{name}': must be {bound}.", param=name, code=code)
