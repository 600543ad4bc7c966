"""The answer to a delete."""

from gateway.schemas.deleted import deleted_object


def test_it_names_what_is_gone() -> None:
    """Id, kind, and that it is deleted; nothing of the object."""
    assert deleted_object("job", "job_1") == {"id": "job_1", "object": "job", "deleted": True}
