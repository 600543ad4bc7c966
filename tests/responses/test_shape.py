"""The Response object."""

from gateway.core.usage import Usage
from gateway.responses.shape import as_failed, new_response, owned
from tests.support.contract import checked
from tests.support.responses import native_response

MEMBERS = {"model": "m", "input": "x", "temperature": 0, "text": {"verbosity": "low"}}


def test_a_new_response() -> None:
    """What was asked is told, with the API's defaults; it is valid from the start."""
    made = new_response("resp_1", 5, MEMBERS, status="queued", tier="flex", background=True)
    checked(made, "response")
    assert (made["temperature"], made["tool_choice"], made["tools"]) == (0, "auto", [])
    assert made["text"] == {"format": {"type": "text"}, "verbosity": "low"}
    assert (made["store"], made["background"], made["metadata"]) == (True, True, {})


def test_one_that_a_target_made() -> None:
    """Output, model and usage are the target's; id, time and storage are ours."""
    ours = new_response("resp_1", 5, {**MEMBERS, "metadata": {"a": "b"}}, status="x", tier="flex")
    whole = owned({**native_response("hi"), "store": False, "metadata": {}}, ours)
    checked(whole, "response")
    assert (whole["id"], whole["created_at"], whole["store"]) == ("resp_1", 5, True)
    assert (whole["metadata"], whole["service_tier"]) == ({"a": "b"}, "flex")
    assert (whole["model"], whole["status"]) == ("n-2030", "completed")


def test_usage_and_failure() -> None:
    """Both as the schema has them."""
    made = new_response("resp_1", 5, MEMBERS, status="in_progress", tier=None)
    made["usage"] = Usage(5, 3, 2, 1).to_responses()
    failed = checked(as_failed(made, "code", "message"), "response")
    assert failed["error"] == {"code": "code", "message": "message"}
    assert failed["usage"]["total_tokens"] == 8
