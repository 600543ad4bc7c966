"""How a client command finds its gateway."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.bootstrap.announce import announced
from gateway.core.errors import ConfigError
from gateway.core.settings import load_settings
from gateway.tenancy.keyfile import load_or_make_key

if TYPE_CHECKING:
    from gateway.providers.api_client import ApiClient

BaseUrl = Annotated[
    str | None,
    typer.Option("--base-url", envvar="HEADWAY_BASE_URL", help="Gateway address, with /v1."),
]
ApiKey = Annotated[
    str | None,
    typer.Option("--api-key", envvar="HEADWAY_API_KEY", help="Client key.", show_envvar=True),
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="The gateway's data directory.")]


def connect(base_url: str | None, api_key: str | None, data_dir: Path | None) -> "ApiClient":
    """A client from the options; what is missing is read from the data directory.

    Raises ConfigError when no gateway was started there.
    """
    folder = load_settings(data_dir=data_dir).data_dir
    if base_url is None:
        known = announced(folder)
        if known is None:
            raise ConfigError(
                f"no gateway was started with data directory {folder}: "
                "give --base-url, or start `headway serve`"
            )
        base_url = known.base_url
    if api_key is None:
        api_key, _ = load_or_make_key(folder)
    from gateway.providers.api_client import ApiClient

    return ApiClient(base_url, api_key)
