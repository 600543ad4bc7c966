"""How a simulated engine is served."""

import math
from dataclasses import dataclass

from gateway.core.errors import ConfigError
from gateway.simulator.engine import POLICIES
from gateway.simulator.gauges import FLAVOURS
from gateway.simulator.profile import EngineProfile


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """``scale`` times real speed; answers without a limit have ``output_tokens``."""

    profile: EngineProfile
    host: str = "127.0.0.1"
    port: int = 8001
    policy: str = "fcfs"
    scale: float = 1.0
    model: str = ""
    flavour: str = "vllm"
    context: int = 32_768
    output_tokens: int = 256

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ConfigError(f"The policy is one of {', '.join(POLICIES)}.")
        if self.flavour not in FLAVOURS:
            raise ConfigError(f"The metrics are those of {' or '.join(FLAVOURS)}.")
        if not 0 < self.scale < math.inf or self.output_tokens < 1:
            raise ConfigError("scale and output tokens are numbers above 0.")

    @property
    def served_model(self) -> str:
        """The name that clients use."""
        return self.model or self.profile.name
