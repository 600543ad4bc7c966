"""The targets of a policy, by name."""

import asyncio
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from gateway.core.clock import Clock, SystemClock
from gateway.core.errors import ConfigError
from gateway.providers.base import Target
from gateway.providers.openai_http import LONGEST_ANSWER, Dialect, OpenAITarget
from gateway.providers.scrubber import Scrubber

_AZURE = "azure"


class TargetSettings(Protocol):
    """What a policy says about reaching one target."""

    @property
    def kind(self) -> str:
        """Such as ``openai`` or ``azure``."""

    @property
    def base_url(self) -> str | None:
        """Address, ending in ``/v1`` as the vendor writes it."""

    @property
    def api_version(self) -> str | None:
        """Version of Azure's dated API; None: its v1 API."""

    @property
    def api_key(self) -> SecretStr | None:
        """Our key there."""

    @property
    def api_keys(self) -> tuple[SecretStr, ...]:
        """Several keys of ours there, in the order of use."""

    @property
    def headers(self) -> Mapping[str, SecretStr]:
        """More headers of each call."""


class DeclaresTargets(Protocol):
    """The part of a policy that is read here."""

    @property
    def targets(self) -> Mapping[str, TargetSettings]:
        """Targets by name."""


class Registry:
    """Every target that can be called. Local targets need their ``base_url`` filled in before."""

    def __init__(self, targets: dict[str, OpenAITarget]) -> None:
        self._targets = targets

    @classmethod
    def from_policy(
        cls,
        policy: DeclaresTargets,
        clock: Clock | None = None,
        longest_answer: int = LONGEST_ANSWER,
    ) -> "Registry":
        """One target object per entry of the policy. Raises ConfigError for one without address.

        An answer that is not streamed has at most ``longest_answer`` bytes.
        """
        known = clock or SystemClock()
        made = {name: _target(name, of, known) for name, of in policy.targets.items()}
        for target in made.values():
            target.longest_answer = longest_answer
        return cls(made)

    def get(self, name: str) -> Target:
        """The target ``name`` of the policy."""
        return self._targets[name]

    async def get_page(self, name: str, path: str, seconds: float) -> tuple[int, bytes]:
        """Status and body of ``GET path`` below the root of target ``name``'s server.

        Raises UpstreamError.
        """
        return await self._targets[name].get_page(path, seconds)

    def scrubber(self, name: str) -> Scrubber:
        """What takes the secrets of target ``name`` out of text."""
        return self._targets[name].scrub

    async def aclose(self) -> None:
        """Close every connection of every target."""
        await asyncio.gather(*(target.aclose() for target in self._targets.values()))


def _target(name: str, policy: TargetSettings, clock: Clock) -> OpenAITarget:
    base_url, keys, headers = access_of(name, policy)
    if policy.kind != _AZURE:
        return OpenAITarget(name, base_url, clock, api_keys=keys, headers=headers)
    return OpenAITarget(
        name,
        azure_url(base_url, dated=policy.api_version is not None),
        clock,
        api_keys=keys,
        headers=headers,
        dialect=Dialect("api-key", policy.api_version),
    )


def azure_url(base_url: str, *, dated: bool) -> str:
    """The base URL of a resource's API, whether or not the policy writes its path."""
    url = urlsplit(base_url)
    above = url.path.rstrip("/").removesuffix("/v1").removesuffix("/openai")
    return urlunsplit(url._replace(path=f"{above}/openai" if dated else f"{above}/openai/v1"))


def access_of(name: str, policy: TargetSettings) -> tuple[str, list[str], dict[str, str]]:
    """Address, keys and headers in clear. Raises ConfigError without an address."""
    if not policy.base_url:
        raise ConfigError(f"target {name}: base_url is missing")
    secrets = policy.api_keys or ((policy.api_key,) if policy.api_key else ())
    keys = [key.get_secret_value() for key in secrets]
    return (
        policy.base_url,
        keys,
        {h: value.get_secret_value() for h, value in policy.headers.items()},
    )
