"""Rows come from the input file by their index."""

from typing import Any

import orjson

from gateway.batches.rows import RowSource, _row
from gateway.store.keys import shard_of
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane


async def test_rows_of_a_run(plane: BatchPlane) -> None:
    """Each row has its id and body; the body is what the client wrote."""
    lines = [chat_line(f"id-{n}", f"say {n}\u2028") for n in range(5)]
    await plane.start(*lines)
    lease = await plane.queue.lease(shard_of("m"), "w", 5, 10**9, 60_000)
    assert lease is not None
    rows = await plane.source.read(lease.runs[0])
    assert [row.index for row in rows] == [row.index for row in lease.runs[0].rows]
    found = {row.custom_id: orjson.loads(row.body) for row in rows}
    assert found == {line["custom_id"]: line["body"] for line in lines}
    assert {(row.method, row.url) for row in rows} == {("POST", "/v1/chat/completions")}


async def test_ids_without_a_lease(plane: BatchPlane) -> None:
    """Dead rows are found by segment and index."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(3)))
    ids = await plane.source.custom_ids(f"{batch_id}.0", [2, 0])
    assert len(set(ids.values())) == 2
    assert set(ids) == {0, 2}


async def test_an_index_is_read_once(plane: BatchPlane) -> None:
    """The index of a segment is remembered after its first use."""
    first = await plane.start(chat_line("1", "x"))
    second = await plane.start(chat_line("2", "x"))
    source = RowSource(plane.blobs)
    await source.custom_ids(f"{first}.0", [0])
    await plane.blobs.delete(f"jobs/{first}/index-0")
    assert await source.custom_ids(f"{first}.0", [0]) == {0: "1"}
    await source.custom_ids(f"{second}.0", [0])
    assert len(source._indexes) == 2


async def test_the_row_of_a_job(plane: BatchPlane) -> None:
    """Index and line come out of one blob, which is not remembered."""
    job = await plane.job("hello")
    lease = await plane.queue.lease(shard_of("m"), "w", 5, 10**9, 60_000)
    assert lease is not None
    [row] = await plane.source.read(lease.runs[0])
    assert (row.custom_id, row.url) == (job["id"], "/v1/chat/completions")
    assert orjson.loads(row.body)["messages"] == [{"role": "user", "content": "hello"}]
    assert await plane.source.custom_ids(f"{job['id']}.0", [0]) == {0: job["id"]}
    assert not plane.source._indexes


async def test_what_the_endpoint_refuses(plane: BatchPlane) -> None:
    """A row that a call would get 400 for has that refusal; the others have none."""
    cases: dict[str, tuple[dict[str, Any], str, str]] = {
        "above": ({"max_tokens": 2**31}, "max_tokens", "integer_above_max_value"),
        "below": ({"max_tokens": -1}, "max_tokens", "integer_below_min_value"),
        "tier": ({"service_tier": "bogus"}, "service_tier", "invalid_value"),
        "options": ({"stream_options": {}}, "stream_options", "invalid_value"),
        "empty": ({"messages": []}, "messages", "empty_array"),
    }
    lines = [chat_line(name, "x", **members) for name, (members, *_) in cases.items()]
    await plane.start(chat_line("good", "x", n=2, unknown=[1]), *lines)
    lease = await plane.queue.lease(shard_of("m"), "w", 9, 10**12, 60_000)
    assert lease is not None
    rows = {row.custom_id: row.refusal for row in await plane.source.read(lease.runs[0])}
    assert rows.pop("good") is None
    assert {name: said and (said.param, said.code) for name, said in rows.items()} == {
        name: (param, code) for name, (_, param, code) in cases.items()
    }


def test_a_long_integer_stays() -> None:
    """A row's body has the number that the client wrote."""
    line = chat_line("1", "x")
    line["body"]["seed"] = 0
    text = orjson.dumps(line).replace(b'"seed":0', b'"seed":123456789012345678901')
    row = _row(0, text, 1)
    assert row.fault is None
    assert b'"seed":123456789012345678901' in row.body
