"""Only what is old and belongs to nobody is named."""

from pathlib import Path

from gateway.store.leftovers import ended, half_made, remove_orphans, unfinished_work


def _write(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return path


def test_bytes_without_a_record(tmp_path: Path) -> None:
    """A file with a record stays, and so does one that was written just now."""
    kept = [_write(tmp_path / "files" / "t" / name) for name in ("a.data", "a.json")]
    orphan = _write(tmp_path / "files" / "t" / "b.data")
    assert remove_orphans(tmp_path, orphan.stat().st_ctime - 1) == 0
    assert remove_orphans(tmp_path, orphan.stat().st_ctime + 1) == 1
    assert not orphan.exists()
    assert all(path.exists() for path in kept)


def test_batches_by_what_there_is_of_them(tmp_path: Path) -> None:
    """Half made, running, ended with work left, ended."""
    jobs = tmp_path / "jobs"
    for name in ("half/input", "run/manifest.json", "run/parts/0.jsonl"):
        _write(jobs / f"batch_{name}")
    for name in ("left/manifest.json", "left/state.json", "left/parts/0.jsonl"):
        _write(jobs / f"batch_{name}")
    for name in ("done/manifest.json", "done/state.json"):
        _write(jobs / f"batch_{name}")
    later = (jobs / "batch_done" / "state.json").stat().st_ctime + 1
    assert half_made(tmp_path, later) == ["batch_half"]
    assert sorted(ended(tmp_path, later)) == ["batch_done", "batch_left"]
    assert unfinished_work(tmp_path, later) == ["batch_left"]
    young = (jobs / "batch_half").stat().st_ctime - 1
    assert [half_made(tmp_path, young), ended(tmp_path, young)] == [[], []]
