"""What ``headway serve`` says to the person who started it, on standard output."""

import asyncio
from collections.abc import Mapping

from gateway.bootstrap.probes import address_of, connects
from gateway.core.settings import Settings

_LOOK_EVERY = 0.2


def greet(settings: Settings, base_url: str, new_key: str | None) -> None:
    """Where it serves, and the key: in full once, when it is made."""
    if new_key is not None:
        where = f"{new_key} (kept in {settings.data_dir / 'api_key'})"
    elif settings.api_key is not None:
        where = "as set in HEADWAY_API_KEY"
    else:
        where = f"in {settings.data_dir / 'api_key'}"
    _say(f"Headway serves at {base_url}\nkey: {where}")


async def say_ready(local: Mapping[str, str]) -> None:
    """Of each model worker that was started here: when it answers. ``local`` is name to URL."""
    await asyncio.gather(*(_when_ready(name, url) for name, url in local.items()))


async def _when_ready(name: str, url: str) -> None:
    while not await connects(*address_of(url)):  # noqa: ASYNC110 - another process
        await asyncio.sleep(_LOOK_EVERY)
    _say(f"ready: the model of {name} answers")


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201
