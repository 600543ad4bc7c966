"""POST /v1/chat/completions."""

from gateway.api.body import BodyLimits
from gateway.api.calls import CallParts
from gateway.api.inference import Inference
from gateway.core.endpoints import CHAT
from gateway.schemas.chat import parse_chat


def chat_completions(parts: CallParts, limits: BodyLimits) -> Inference:
    """The endpoint, streamed and not."""
    return Inference(CHAT, parse_chat, parts, limits)
