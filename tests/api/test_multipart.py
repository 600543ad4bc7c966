"""A form is received piece by piece, whatever the pieces."""

from collections.abc import AsyncIterator

import pytest

from gateway.api.multipart import STEP, Form, receive
from gateway.core.errors import InvalidRequest

KIND = "multipart/form-data; boundary=XX"


def _body(content: bytes, more: bytes = b"") -> bytes:
    return (
        b'--XX\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        b'--XX\r\nContent-Disposition: form-data; name="file"; filename="x.jsonl"\r\n'
        b"Content-Type: application/jsonl\r\n\r\n" + content + b"\r\n" + more + b"--XX--\r\n"
    )


async def _received(body: bytes, size: int) -> tuple[Form, list[bytes]]:
    steps: list[bytes] = []

    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(body), size):
            yield body[at : at + size]

    async def sink(data: bytes) -> None:
        steps.append(data)

    return await receive(KIND, chunks(), sink), steps


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
async def test_any_split(size: int) -> None:
    """The same form from any pieces, with boundary-like bytes inside the file."""
    content = b"line\r\n--X\r\n--XY\r\n\r\n" * 20
    form, steps = await _received(_body(content), size)
    assert (form.fields, form.filename) == ({"purpose": "batch"}, "x.jsonl")
    assert b"".join(steps) == content


async def test_steps_of_256_kb() -> None:
    """The file goes out in full steps, the rest at the end."""
    _, steps = await _received(_body(b"x" * (2 * STEP + 5)), 65_536)
    assert [len(step) for step in steps] == [STEP, STEP, 5]


async def test_a_second_file_is_refused() -> None:
    """One upload, one file."""
    second = b'--XX\r\nContent-Disposition: form-data; name="file"; filename="y"\r\n\r\n1\r\n'
    with pytest.raises(InvalidRequest):
        await _received(_body(b"1", second), 1000)


@pytest.mark.parametrize(
    "more",
    [
        b'--XX\r\nContent-Disposition: form-data; name="m"\r\n\r\n' + b"x" * 70_000 + b"\r\n",
        b'--XX\r\nContent-Disposition: form-data; name="m"\r\n\r\n1\r\n' * 40,
    ],
)
async def test_fields_are_bounded(more: bytes) -> None:
    """Neither a huge field nor a thousand of them fill the memory."""
    with pytest.raises(InvalidRequest):
        await _received(_body(b"1", more), 4096)


async def test_a_cut_body_is_no_form() -> None:
    """An upload that ends early is refused, not kept as a shorter file."""
    with pytest.raises(InvalidRequest):
        await _received(_body(b"abc")[:-8], 1000)


async def test_a_text_in_place_of_the_file() -> None:
    """``-F file=text`` is told what it lacks."""
    body = b'--XX\r\nContent-Disposition: form-data; name="file"\r\n\r\ntext\r\n--XX--\r\n'
    with pytest.raises(InvalidRequest, match="file=@PATH") as caught:
        await _received(body, 1000)
    assert caught.value.param == "file"


async def test_an_endless_boundary_is_refused() -> None:
    """The header is the caller's fault as the body is."""

    async def nothing() -> AsyncIterator[bytes]:
        yield b""

    async def sink(data: bytes) -> None:
        del data

    with pytest.raises(InvalidRequest):
        await receive("multipart/form-data; boundary=" + "x" * 5000, nothing(), sink)
