"""A purged job leaves nothing behind."""

import pytest

from gateway.core.errors import Conflict, NotFound
from gateway.jobs.purge import purge_job
from tests.support.batch_plane import BatchPlane


async def test_nothing_of_a_purged_job_remains(plane: BatchPlane) -> None:
    """I10: refused while it waits; then no key, no file, and nothing puts it back."""
    job_id = (await plane.job())["id"]
    with pytest.raises(Conflict):
        await purge_job(plane.jobs, plane.queue, job_id)
    assert await plane.run(9) == 1
    await plane.finish()
    await plane.job_keeper.step()
    await purge_job(plane.jobs, plane.queue, job_id)
    keys = await plane.store.execute_command("KEYS", "*")
    assert not [key for key in keys if job_id.encode() in key]
    assert not list(plane.root.rglob(f"{job_id}*"))
    assert await plane.job_keeper.step() == 0
    assert (await plane.a.get(f"/v1/jobs/{job_id}")).status_code == 404
    with pytest.raises(NotFound):
        await purge_job(plane.jobs, plane.queue, job_id)
