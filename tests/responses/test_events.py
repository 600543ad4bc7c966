"""Events are numbered and named."""

from gateway.responses.events import Numbered, encoded, error_event, text_events
from tests.support.contract import checked


def test_numbers_and_names() -> None:
    """From 0, with the type as the event's name."""
    number = Numbered()
    first, second = number("response.created", response={}), number("response.queued", response={})
    assert encoded([first, second]) == (
        b'event: response.created\ndata: {"type":"response.created","sequence_number":0,'
        b'"response":{}}\n\nevent: response.queued\ndata: {"type":"response.queued",'
        b'"sequence_number":1,"response":{}}\n\n'
    )


def test_an_error() -> None:
    """Its members are on the event, as this API has them, and in ``error``, as the others do."""
    error = {"message": "m", "type": "server_error", "param": None, "code": "c"}
    event = checked(error_event(Numbered(), error), "response_event")
    checked({"error": event["error"]}, "error")
    assert (event["type"], event["code"], event["message"]) == ("error", "c", "m")


def test_names_of_texts() -> None:
    """A delta and an end."""
    assert text_events("refusal") == ("response.refusal.delta", "response.refusal.done")
