"""The request of ``POST /v1/completions``."""

from gateway.schemas.requests import (
    LONGEST_ANSWER,
    SAMPLING,
    ModelRequest,
    between,
    build,
    count_prompts,
    read_object,
    required,
)

DEFAULT_MAX_TOKENS = 16
_CHECKS = {**SAMPLING, "max_tokens": between(0, LONGEST_ANSWER, whole=True)}


def parse_completion(body: bytes) -> ModelRequest:
    """Read and check a body; ``prompt`` is text, texts, tokens or token arrays.

    Raises InvalidRequest and its kinds.
    """
    members = read_object(body)
    required(members, "model")
    items = count_prompts("prompt", required(members, "prompt"))
    return build(members, _CHECKS, len(body), items)
