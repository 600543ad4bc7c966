"""POST /v1/embeddings."""

from gateway.api.calls import CallParts
from gateway.api.inference import Inference
from gateway.schemas.embeddings import parse_embeddings


def embeddings(parts: CallParts, max_body_bytes: int) -> Inference:
    """The endpoint; encodings and dimensions are the target's business."""
    return Inference("/v1/embeddings", parse_embeddings, parts, max_body_bytes)
