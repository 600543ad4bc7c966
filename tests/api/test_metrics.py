"""``GET /metrics``."""

from starlette.applications import Starlette
from starlette.testclient import TestClient

from gateway.api.metrics import metrics_route


def test_the_page_is_prometheus_text() -> None:
    """What the text function gives, with the format's content type."""
    client = TestClient(Starlette(routes=[metrics_route(lambda: "a 1\n")]))
    answer = client.get("/metrics")
    assert answer.text == "a 1\n"
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
