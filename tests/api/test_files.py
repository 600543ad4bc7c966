"""The Files API as a client sees it."""

from pathlib import Path
from typing import Any

import pytest

from gateway.store.room import DiskRoom
from tests.support.batch_plane import BatchPlane
from tests.support.contract import checked


def _form(parts: list[tuple[str, bytes]]) -> tuple[bytes, dict[str, str]]:
    """A multipart body with parts of raw dispositions in the given order."""
    body = b"".join(
        b"--XX\r\nContent-Disposition: form-data; " + head.encode() + b"\r\n\r\n" + data + b"\r\n"
        for head, data in parts
    )
    return body + b"--XX--\r\n", {"content-type": "multipart/form-data; boundary=XX"}


async def test_upload_read_list_delete(plane: BatchPlane) -> None:
    """The whole life of a file; bytes are kept as they came, BOM and all."""
    content = b"\xef\xbb\xbfnot json\r\n\0"
    file_id = await plane.upload(content)
    record = checked((await plane.a.get(f"/v1/files/{file_id}")).json(), "file")
    assert (record["bytes"], record["filename"], record["purpose"]) == (
        len(content),
        "x.jsonl",
        "batch",
    )
    assert record["expires_at"] == record["created_at"] + 30 * 86_400
    listed = checked((await plane.a.get("/v1/files")).json(), "file_list")
    assert listed["data"] == [record]
    answer = await plane.a.get(
        f"/v1/files/{file_id}/content", headers={"accept": "application/binary"}
    )
    assert answer.content == content
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-length"] == str(len(content))
    gone = await plane.a.delete(f"/v1/files/{file_id}")
    checked(gone.json(), "file_deleted")
    for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
        missing = await plane.a.request(method, f"/v1/files/{file_id}{path}")
        assert missing.status_code == 404
        checked(missing.json(), "error")


async def test_parts_in_any_order_and_an_empty_file(plane: BatchPlane) -> None:
    """The purpose may follow the file; an empty file uploads fine."""
    for first in (True, False):
        parts = [('name="file"; filename="e.jsonl"', b""), ('name="purpose"', b"user_data")]
        body, headers = _form(parts if first else parts[::-1])
        answer = await plane.a.post("/v1/files", content=body, headers=headers)
        record = checked(answer.json(), "file")
        assert (record["bytes"], record["expires_at"]) == (0, None)


async def test_expires_after(plane: BatchPlane) -> None:
    """The form spelling of the SDK."""
    answer = await plane.a.post(
        "/v1/files",
        files={"file": ("x.jsonl", b"x")},
        data={
            "purpose": "batch",
            "expires_after[anchor]": "created_at",
            "expires_after[seconds]": "3600",
        },
    )
    record = checked(answer.json(), "file")
    assert record["expires_at"] == record["created_at"] + 3600


async def test_limits(plane: BatchPlane) -> None:
    """A batch file of the limit is fine, one byte more is 413; other purposes may be larger."""
    limit = plane.settings.max_upload_bytes
    await plane.upload(b"x" * limit)
    await plane.upload(b"x" * (limit + 1), "user_data")
    answer = await plane.a.post(
        "/v1/files", files={"file": ("x", b"x" * (limit + 1))}, data={"purpose": "batch"}
    )
    assert answer.status_code == 413
    checked(answer.json(), "error")
    assert not list((plane.root / "tmp").iterdir())


async def test_a_declared_length_over_the_limit_is_refused_unread(plane: BatchPlane) -> None:
    """Nobody uploads 600 MB to be told at the end."""
    body, headers = _form([('name="purpose"', b"batch")])
    answer = await plane.a.post(
        "/v1/files", content=body, headers={**headers, "content-length": str(600 * 2**20)}
    )
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("parts", "param"),
    [
        ([('name="purpose"', b"batch")], "file"),
        ([('name="file"; filename="x"', b"1")], "purpose"),
        ([('name="file"; filename="x"', b"1"), ('name="purpose"', b"batch_output")], "purpose"),
        ([('name="file"; filename=""', b"1"), ('name="purpose"', b"batch")], "file"),
    ],
)
async def test_faulty_forms(plane: BatchPlane, parts: list[tuple[str, bytes]], param: str) -> None:
    """400 naming what is wrong, and nothing is kept."""
    body, headers = _form(parts)
    answer = await plane.a.post("/v1/files", content=body, headers=headers)
    assert answer.status_code == 400
    assert checked(answer.json(), "error")["error"]["param"] == param
    assert (await plane.a.get("/v1/files")).json()["data"] == []


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"{}", "application/json"),
        (b"--XX\r\n", "multipart/form-data; boundary=XX"),
        (b"junk", "multipart/form-data; boundary=XX"),
        (b"", "multipart/form-data"),
    ],
)
async def test_what_is_no_form(plane: BatchPlane, content: bytes, kind: str) -> None:
    """Malformed and cut bodies are 400."""
    answer = await plane.a.post("/v1/files", content=content, headers={"content-type": kind})
    assert answer.status_code == 400
    checked(answer.json(), "error")


@pytest.mark.parametrize(
    "name", ["../../x.jsonl", "/etc/x.jsonl", "a\\..\\b", "..%2fx", "a\0b", "x" * 5000, "q;r'名"]
)
async def test_names_are_never_paths(plane: BatchPlane, tmp_path: Path, name: str) -> None:
    """SEC-11: stored under a server-made id only; the name is shown as text or refused."""
    head = f'name="file"; filename="{name}"'
    body, headers = _form([(head, b"1"), ('name="purpose"', b"batch")])
    answer = await plane.a.post("/v1/files", content=body, headers=headers)
    if answer.status_code == 200:
        record = checked(answer.json(), "file")
        assert record["filename"] == name
        content = await plane.a.get(f"/v1/files/{record['id']}/content")
        shown = content.headers["content-disposition"]
        assert "/" not in shown.replace("''", "")
        assert "\\" not in shown
    else:
        assert answer.status_code == 400
    assert _outside(tmp_path, plane.root) == []


def _outside(folder: Path, inside: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file() and not p.is_relative_to(inside)]


async def test_pages(plane: BatchPlane) -> None:
    """Three pages by after, in both orders, filtered by purpose."""
    made = [await plane.upload(b"x", "user_data") for _ in range(5)]
    await plane.upload(b"x")
    for order, wanted in (("desc", made[::-1]), ("asc", made)):
        seen: list[str] = []
        more: dict[str, Any] = {}
        while more.get("has_more", True):
            query = {"limit": "2", "order": order, "purpose": "user_data"}
            after = {"after": seen[-1]} if seen else {}
            answer = await plane.a.get("/v1/files", params={**query, **after})
            more = checked(answer.json(), "file_list")
            seen += [file["id"] for file in more["data"]]
        assert sorted(seen) == sorted(wanted)
        assert seen == sorted(seen, reverse=order == "desc")
    refused = await plane.a.get("/v1/files", params={"limit": "0"})
    assert refused.status_code == 400


async def test_foreign_files(plane: BatchPlane) -> None:
    """SEC-13: another tenant's file is 404 in every way and not listed."""
    file_id = await plane.upload(b"x")
    for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
        answer = await plane.b.request(method, f"/v1/files/{file_id}{path}")
        assert answer.status_code == 404
    assert (await plane.b.get("/v1/files")).json()["data"] == []
    assert (await plane.a.get(f"/v1/files/{file_id}")).status_code == 200


async def test_head_of_content(plane: BatchPlane) -> None:
    """HEAD tells the length and sends nothing."""
    file_id = await plane.upload(b"x" * 10)
    answer = await plane.a.head(f"/v1/files/{file_id}/content")
    assert (answer.headers["content-length"], answer.content) == ("10", b"")


async def test_no_room_for_new_work(plane: BatchPlane) -> None:
    """503 store_full in OpenAI's shape, with a time to come back; what is there can be read."""
    file_id = await plane.upload(b"{}")
    plane.files.room = DiskRoom(plane.root, plane.clock, free=2**60)
    form = {"files": {"file": ("x.jsonl", b"{}")}, "data": {"purpose": "batch"}}
    body = {"input_file_id": file_id, "endpoint": "/v1/completions", "completion_window": "24h"}
    for answer in (
        await plane.a.post("/v1/files", **form),  # type: ignore[arg-type]  # two members of it
        await plane.a.post("/v1/batches", json=body),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_full")
        assert int(answer.headers["retry-after"]) == 60
    assert (await plane.a.get(f"/v1/files/{file_id}/content")).content == b"{}"
    assert await plane.batches.all_ids() == []
