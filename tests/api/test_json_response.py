"""JSON answers."""

import orjson
from starlette.responses import JSONResponse

from gateway.api.json_response import JsonResponse
from gateway.schemas.job import JobStatus


def test_the_same_bytes_as_starlettes_own() -> None:
    """States, null, nesting, and text of any language as it is."""
    value = {"status": JobStatus.QUEUED, "n": [1, 2.5, None, True], "text": 'ü 語 "q"'}
    answer, usual = JsonResponse(value, 202, {"location": "/x"}), JSONResponse(value)
    assert answer.body == usual.body
    assert orjson.loads(bytes(answer.body)) == value
    assert answer.status_code == 202
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["location"] == "/x"


def test_what_others_wrote_goes_out_as_it_is() -> None:
    """Integers beyond 64 bits, and half of a character, are no fault of the caller."""
    assert JsonResponse({"n": 2**70, "half": "\ud83d"}).body == b'{"n":%d,"half":"\\ud83d"}' % 2**70
