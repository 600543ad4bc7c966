"""Names and layout of the files of jobs."""

from gateway.batches.ordering import ROW
from gateway.core.ids import new_ordered_id
from gateway.store.job_files import (
    INDEX,
    end_blob,
    facts_in,
    folder_ended_at,
    folder_of,
    is_job,
    is_job_id,
    job_blob,
    packed_job,
    part_blob,
)


def test_ids() -> None:
    """A job is told from a batch by its id; only ids made here have files."""
    job_id = new_ordered_id("job", 1_800_000_000_000)
    assert is_job_id(job_id)
    assert is_job(f"{job_id}.0")
    assert not is_job("batch_1")
    assert not any(map(is_job_id, ("job_x", "job_../../etc", job_id.upper(), job_id + "0")))


def test_files_of_one_time_lie_together() -> None:
    """The folder follows from the id, and is closed after 17 minutes."""
    first, second = (new_ordered_id("job", 1_800_000_000_000 + n) for n in (0, 1000))
    names = [job_blob(first), end_blob(first), part_blob(first, 7)]
    assert all(name.startswith(folder_of(first)) for name in names)
    assert folder_of(first) == folder_of(second)
    assert 1_800_000_000 < folder_ended_at(folder_of(first)) < 1_800_000_000 + 1049


def test_one_blob_is_index_line_and_facts() -> None:
    """The index is one that batches read."""
    blob = packed_job(b'{"a":1}', 12, b'{"f":2}')
    offset, length, tokens, prefix = ROW.unpack_from(blob)
    assert (blob[offset : offset + length], tokens, prefix) == (b'{"a":1}', 12, 0)
    assert facts_in(blob) == b'{"f":2}'
    assert INDEX.format == ROW.format
