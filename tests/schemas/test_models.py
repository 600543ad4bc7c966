"""Model objects."""

from gateway.schemas.models import model_list, model_object


def test_objects() -> None:
    """A list holds the objects in order."""
    assert model_list(["a", "b"], 7) == {
        "object": "list",
        "data": [model_object("a", 7), model_object("b", 7)],
    }
    assert model_object("a", 7) == {
        "id": "a",
        "object": "model",
        "created": 7,
        "owned_by": "headway",
    }
