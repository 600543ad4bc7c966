"""The models a key may use: /v1/models."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.api.auth import caller_of
from gateway.api.json_response import JsonResponse
from gateway.routing.router import model_not_found
from gateway.schemas.models import model_list, model_object


class Models:
    """Handlers. ``names`` in the policy's order; ``created`` is when this policy was loaded."""

    def __init__(self, names: Sequence[str], created: int) -> None:
        self._names = names
        self._created = created

    def routes(self) -> list[Route]:
        """The routes; a model's name may hold slashes."""
        return [
            Route("/v1/models", self.list, methods=["GET"]),
            Route("/v1/models/{model:path}", self.retrieve, methods=["GET"]),
        ]

    async def list(self, request: Request) -> Response:
        """GET /v1/models."""
        caller = caller_of(request)
        names = [name for name in self._names if caller.may_use(name)]
        return JsonResponse(model_list(names, self._created))

    async def retrieve(self, request: Request) -> Response:
        """GET /v1/models/{model}."""
        caller = caller_of(request)
        name: str = request.path_params["model"]
        if name not in self._names or not caller.may_use(name):
            raise model_not_found(name)
        return JsonResponse(model_object(name, self._created))
