"""Which Redis a process uses when it is not told: the one of the data directory's gateway."""

import json
from pathlib import Path

from gateway.core.errors import ConfigError
from gateway.core.settings import Settings


def store_url(settings: Settings) -> str:
    """The setting, else the embedded server that ``headway serve`` runs for this data directory.

    Raises ConfigError when there is neither.
    """
    if settings.redis_url is not None:
        return settings.redis_url.get_secret_value()
    try:
        endpoint = json.loads((settings.data_dir / "queue" / "endpoint.json").read_text())
        socket = Path(endpoint["socket"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ConfigError(
            f"no queue server: set HEADWAY_REDIS_URL, or start `headway serve` with data "
            f"directory {settings.data_dir}"
        ) from None
    return f"unix://{socket}"
