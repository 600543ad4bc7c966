"""POST /v1/embeddings."""

from functools import partial
from typing import Any

from gateway.api.body import BodyLimits
from gateway.api.calls import Call, CallParts
from gateway.api.inference import Inference
from gateway.api.plain import answer_plain
from gateway.core.endpoints import EMBEDDINGS
from gateway.providers.answers import with_vectors_as_wanted
from gateway.routing.route import Route
from gateway.schemas.embeddings import parse_embeddings


def embeddings(parts: CallParts, limits: BodyLimits) -> Inference:
    """The endpoint. Dimensions are the target's business, the encoding is as it was asked for."""
    plain = partial(answer_plain, mend=_encoded)
    return Inference(EMBEDDINGS, parse_embeddings, parts, limits, plain)


def _encoded(call: Call, route: Route, answer: dict[str, Any]) -> dict[str, Any] | None:
    return with_vectors_as_wanted(call.request.members, answer, route.target)
