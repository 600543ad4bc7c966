"""From closed segments to files: every row in exactly one, once, whoever dies on the way."""

import asyncio
from typing import Any

import pytest

from gateway.store.keys import shard_of
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane, eventually


def _ids(lines: list[Any]) -> list[str]:
    return [line["custom_id"] for line in lines]


async def _files(plane: BatchPlane, batch: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    output = await plane.lines(batch["output_file_id"])
    return output, await plane.lines(batch["error_file_id"], "batch_error_line")


async def test_good_and_bad_rows(plane: BatchPlane) -> None:
    """BAT-01, BAT-17: each id in exactly one file, in input order, with the answer to its own."""
    batch_id = await plane.start(*(chat_line(f"n{n}", f"say {n}" * (n + 1)) for n in range(25)))
    while await plane.run(4, lambda row: int(row.custom_id[1:]) % 5 != 0):
        pass
    await plane.finish()
    batch = await plane.get(batch_id)
    output, error = await _files(plane, batch)
    assert _ids(output) == [f"n{n}" for n in range(25) if n % 5]
    assert _ids(error) == [f"n{n}" for n in range(25) if not n % 5]
    for line in output:
        number = int(line["custom_id"][1:])
        said = line["response"]["body"]["said"]["messages"][0]["content"]
        assert said == f"say {number}" * (number + 1)
    assert batch["status"] == "completed"
    assert batch["request_counts"] == {"total": 25, "completed": 20, "failed": 5}
    assert batch["usage"]["total_tokens"] == 240
    assert batch["completed_at"] >= batch["finalizing_at"] >= batch["in_progress_at"]


async def test_no_row_fails(plane: BatchPlane) -> None:
    """BAT-14: error_file_id is null, counts 2/0/2."""
    batch_id = await plane.start(chat_line("1", "x"), chat_line("2", "x"))
    await plane.run(2)
    await plane.finish()
    batch = await plane.get(batch_id)
    assert batch["error_file_id"] is None
    assert batch["request_counts"] == {"total": 2, "completed": 2, "failed": 0}
    listed = (await plane.a.get("/v1/files", params={"purpose": "batch_output"})).json()["data"]
    assert [file["id"] for file in listed] == [batch["output_file_id"]]
    assert listed[0]["expires_at"] == listed[0]["created_at"] + 30 * 86_400


async def test_all_rows_fail(plane: BatchPlane) -> None:
    """BAT-13: completed, output null, error file set, 20 equal answers."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(9)))
    await plane.run(9, lambda row: False)
    await plane.finish()
    batch = await plane.get(batch_id)
    assert (batch["status"], batch["output_file_id"]) == ("completed", None)
    assert batch["request_counts"] == {"total": 9, "completed": 0, "failed": 9}
    assert len((await _files(plane, batch))[1]) == 9
    for _ in range(20):
        assert await plane.get(batch_id) == batch


async def test_cancel_while_running(plane: BatchPlane) -> None:
    """BAT-02: the 5 done stay in the output, the 20 others get batch_cancelled; 5/20/25."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(25)))
    await plane.run(5)
    answer = await plane.a.post(f"/v1/batches/{batch_id}/cancel")
    assert answer.json()["status"] == "cancelling"
    assert await plane.run(5) == 0
    await plane.finish()
    batch = await plane.get(batch_id)
    output, error = await _files(plane, batch)
    assert (batch["status"], len(output), len(error)) == ("cancelled", 5, 20)
    assert {line["error"]["code"] for line in error} == {"batch_cancelled"}
    assert batch["request_counts"] == {"total": 25, "completed": 5, "failed": 20}


async def test_expiry(plane: BatchPlane) -> None:
    """BAT-18 scaled: the window of 1 s passes; 1 line out, 9 with batch_expired; 1/9/10."""
    lines = [chat_line(str(n), "x") for n in range(10)]
    expiry = {"anchor": "created_at", "seconds": 3600}
    batch_id = await plane.start(*lines, completion_window="1s", output_expires_after=expiry)
    await plane.run(1)

    async def expired() -> bool:
        return (await plane.queue.tick(shard_of("m"), 10)).expired > 0

    await eventually(expired)
    await plane.finish()
    batch = await plane.get(batch_id)
    output, error = await _files(plane, batch)
    assert (batch["status"], len(output), len(error)) == ("expired", 1, 9)
    assert {line["error"]["code"] for line in error} == {"batch_expired"}
    assert batch["request_counts"] == {"total": 10, "completed": 1, "failed": 9}
    file = (await plane.a.get(f"/v1/files/{batch['output_file_id']}")).json()
    assert file["expires_at"] == file["created_at"] + 3600


async def test_several_segments_end_in_one_pair_of_files(plane: BatchPlane) -> None:
    """A mixed batch ends when its last segment does."""
    lines = [chat_line(str(n), "x", model="mn"[n % 2]) for n in range(6)]
    batch_id = await plane.start(*lines)
    await plane.run(3, model="m")
    await plane.finish()
    assert (await plane.get(batch_id))["request_counts"]["completed"] == 3
    await plane.run(3, lambda row: row.custom_id != "1", model="n")
    await plane.finish()
    batch = await plane.get(batch_id)
    output, error = await _files(plane, batch)
    assert batch["status"] == "completed"
    assert sorted(_ids(output)) == ["0", "2", "3", "4", "5"]
    assert _ids(error) == ["1"]


async def test_odd_separators_go_through(plane: BatchPlane) -> None:
    """BAT-22, BAT-23: ids and texts with U+2028 and newlines come back exactly."""
    text = "a\u2028b\u2029c\x85d\ne"
    batch_id = await plane.start(chat_line("id\u2028", text))
    await plane.run(1)
    await plane.finish()
    (line,) = await plane.lines((await plane.get(batch_id))["output_file_id"])
    assert line["custom_id"] == "id\u2028"
    assert line["response"]["body"]["said"]["messages"][0]["content"] == text


async def test_work_files_go_and_state_stays(plane: BatchPlane) -> None:
    """Manifest, state and table of lines are kept; the batch reads the same without Redis."""
    batch_id = await plane.start(chat_line("1", "x"))
    await plane.run(1)
    await plane.finish()
    batch = await plane.get(batch_id)
    names = await plane.blobs.list(f"jobs/{batch_id}/")
    assert [name.rpartition("/")[2] for name in names] == [
        "manifest.json",
        "state.json",
        "table-0",
    ]
    await plane.store.execute_command("FLUSHALL")
    assert await plane.get(batch_id) == batch


@pytest.mark.parametrize("broken", ["close_segment", "save_final", "remove_work"])
async def test_a_crash_while_finalising(
    plane: BatchPlane, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever step a finaliser died at, the next one ends the batch with one pair of files."""
    batch_id = await plane.start(chat_line("1", "x"), chat_line("2", "x"))
    await plane.run(2, lambda row: row.custom_id == "1")

    async def crash(*args: object) -> None:
        raise ConnectionAbortedError

    with monkeypatch.context() as patch:
        patch.setattr(plane.batches, broken, crash)
        with pytest.raises(ConnectionAbortedError):
            await plane.finishing.step()
    first = await plane.get(batch_id)
    shard = shard_of("m")
    await plane.store.execute_command("ZADD", f"gw:{{{shard}}}:fin", "XX", 0, f"{batch_id}.0")
    await plane.finish()
    await plane.reconciler.step()
    batch = await plane.get(batch_id)
    output, error = await _files(plane, batch)
    assert (_ids(output), _ids(error)) == (["1"], ["2"])
    assert first["output_file_id"] in {None, batch["output_file_id"]}
    listed = (await plane.a.get("/v1/files", params={"purpose": "batch_output"})).json()["data"]
    assert len(listed) == 2
    assert await plane.batches.is_final(batch_id)


async def test_two_finalisers(plane: BatchPlane) -> None:
    """Many batches, two finalisers at once: each batch ends once with its own lines."""
    ids = [await plane.start(chat_line(str(n), "x")) for n in range(6)]
    while await plane.run(64):
        pass
    other = plane.another_finishing("other")
    while any(await asyncio.gather(plane.finishing.step(), other.step())):
        pass
    for number, batch_id in enumerate(ids):
        batch = await plane.get(batch_id)
        assert _ids(await plane.lines(batch["output_file_id"])) == [str(number)]
