"""POST /v1/completions."""

from gateway.api.body import BodyLimits
from gateway.api.calls import CallParts
from gateway.api.inference import Inference
from gateway.core.endpoints import COMPLETIONS
from gateway.schemas.completions import parse_completion


def completions(parts: CallParts, limits: BodyLimits) -> Inference:
    """The endpoint: a prompt or an array of them, streamed and not."""
    return Inference(COMPLETIONS, parse_completion, parts, limits)
