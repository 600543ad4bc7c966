"""The request of ``POST /v1/embeddings``."""

from gateway.core.errors import InvalidRequest
from gateway.schemas.requests import (
    TIERS,
    ModelRequest,
    between,
    build,
    count_prompts,
    one_of,
    read_object,
    required,
    text,
)

MAX_INPUTS = 2048
LARGEST_VECTOR = 2**31 - 1
_CHECKS = {
    "encoding_format": one_of("float", "base64"),
    "dimensions": between(1, LARGEST_VECTOR, whole=True),
    "user": text,
    "service_tier": one_of(*TIERS),
}


def parse_embeddings(body: bytes) -> ModelRequest:
    """Read and check a body; ``input`` is text, texts, tokens or token arrays.

    Raises InvalidRequest and its kinds.
    """
    members = read_object(body)
    required(members, "model")
    given = required(members, "input")
    items = count_prompts("input", given)
    if not given or (isinstance(given, list) and isinstance(given[0], str) and "" in given):
        raise InvalidRequest("'input' must not be empty.", param="input", code="invalid_value")
    if items > MAX_INPUTS:
        raise InvalidRequest(
            f"'input' may have at most {MAX_INPUTS} items.",
            param="input",
            code="array_above_max_length",
        )
    # An embeddings answer is never streamed: the members do not exist at this endpoint.
    for name in ("stream", "stream_options"):
        members.pop(name, None)
    return build(members, _CHECKS, len(body), items)
