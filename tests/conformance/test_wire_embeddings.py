"""Embeddings: both encodings, whatever the target knows; inputs of every form; dimensions."""

import base64
import struct
from typing import Any

import pytest

from tests.support.answers import vector_of
from tests.support.interactive import wire
from tests.support.scripts import answer
from tests.support.upstream import ScriptedUpstream

PATH = "/v1/embeddings"
NUMBERS = [0.5, -1.25]
TEXT = base64.b64encode(struct.pack("<2f", *NUMBERS)).decode()


def _list(vector: Any) -> dict[str, Any]:
    row = {"object": "embedding", "index": 0, "embedding": vector}
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": "m", "data": [row], "usage": usage}


@pytest.mark.parametrize("given", [NUMBERS, TEXT])
@pytest.mark.parametrize(
    ("form", "wanted"), [("float", NUMBERS), (None, NUMBERS), ("base64", TEXT)]
)
def test_the_encoding_that_was_asked_for(
    upstream: ScriptedUpstream, given: Any, form: str | None, wanted: Any
) -> None:
    """Also from a target that knows one of them."""
    upstream.enqueue(answer(_list(given)))
    with wire(upstream) as there:
        members = {} if form is None else {"encoding_format": form}
        got = there.ok(PATH, "embedding_list", input="a", **members)
        assert there.gateway.settled(1)[0].outcome.usage.prompt == 1
    assert got == _list(wanted)


def test_the_official_client_and_a_target_without_base64(upstream: ScriptedUpstream) -> None:
    """The client asks for base64 by itself and gets its numbers."""
    upstream.enqueue(answer(_list(NUMBERS)))
    with wire(upstream) as there:
        got = there.client.embeddings.create(model="m", input="a")
        assert there.sent()["encoding_format"] == "base64"
    assert got.data[0].embedding == NUMBERS


@pytest.mark.parametrize("vector", [["x"], None, "?"])
def test_what_is_no_vector(upstream: ScriptedUpstream, vector: Any) -> None:
    """502 where it would have to be turned; nothing is made up."""
    upstream.enqueue(answer(_list(vector)))
    with wire(upstream) as there:
        form = "base64" if isinstance(vector, list) else "float"
        got = there.gateway.post(PATH, {"model": "m", "input": "a", "encoding_format": form})
    assert got.status_code == (200 if vector is None else 502)


@pytest.mark.parametrize("given", ["a b", ["a", "b c"], [1, 2, 3], [[1, 2], [3]]])
def test_inputs(upstream: ScriptedUpstream, given: Any) -> None:
    """Texts and tokens arrive as they are, with dimensions and members of vendors."""
    members = {"dimensions": 4, "truncate": "END", "user": "u"}
    with wire(upstream) as there:
        got = there.ok(PATH, "embedding_list", input=given, **members)
        assert there.sent() == {"model": "m", "input": given, **members}
    one = isinstance(given, str) or isinstance(given[0], int)
    assert len(got["data"]) == (1 if one else len(given))
    if not one:
        assert got["data"][1]["embedding"] == pytest.approx(vector_of(given[1]))


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({}, "input"),
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": ["a", ""]}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format"),
        ({"input": "a", "dimensions": 0}, "dimensions"),
    ],
)
def test_refused(upstream: ScriptedUpstream, members: dict[str, Any], param: str) -> None:
    """400 that names the member; the target is not asked."""
    with wire(upstream) as there:
        got = there.refused(PATH, **members)
    assert (got.status_code, got.json()["error"]["param"]) == (400, param)
    assert not upstream.calls()
