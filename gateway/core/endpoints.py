"""The endpoints that run a model, by their canonical paths."""

from typing import Final

PREFIX: Final = "/v1"
CHAT: Final = f"{PREFIX}/chat/completions"
COMPLETIONS: Final = f"{PREFIX}/completions"
EMBEDDINGS: Final = f"{PREFIX}/embeddings"
RESPONSES: Final = f"{PREFIX}/responses"


def below_prefix(endpoint: str) -> str:
    """The path below a base URL, which ends in ``/v1`` itself."""
    return endpoint.removeprefix(PREFIX)
