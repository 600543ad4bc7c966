"""The seam between targets and their users."""

from typing import TYPE_CHECKING

from gateway.core.clock import SystemClock
from gateway.providers.openai_http import OpenAITarget

if TYPE_CHECKING:
    from gateway.providers.base import Target


async def test_the_http_target_is_a_target() -> None:
    """The one implementation fits the protocol."""
    target: Target = OpenAITarget("t", "http://127.0.0.1:1/v1", SystemClock())
    assert target.name == "t"
    await target.aclose()
