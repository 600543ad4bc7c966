"""What lies on the disk and belongs to nobody, or not to anybody any more.

Age is the time since a name or its bytes changed last. Whatever is younger than asked is never
named here: its owner may be about to write the record that makes it his. Blocking: for threads.
"""

from collections.abc import Iterator
from pathlib import Path

_WORK = ("parts", "input")


def remove_orphans(root: Path, before: float) -> int:
    """Remove bytes of files that have had no record since ``before``; returns how many."""
    removed = 0
    for data in (root / "files").glob("*/*.data"):
        if _is_older(data, before) and not data.with_suffix(".json").exists():
            data.unlink(missing_ok=True)
            removed += 1
    return removed


def half_made(root: Path, before: float) -> list[str]:
    """Batches without a manifest, in folders nobody has touched since ``before``."""
    return [
        folder.name
        for folder in _folders(root)
        if not (folder / "manifest.json").exists()
        and all(_is_older(path, before) for path in (folder, *folder.iterdir()))
    ]


def ended(root: Path, before: float) -> list[str]:
    """Batches whose final state is there since ``before``."""
    return [f.name for f in _folders(root) if _is_older(f / "state.json", before)]


def unfinished_work(root: Path, before: float) -> list[str]:
    """Of those, the ones that still have what only a running batch needs."""
    jobs = root / "jobs"
    return [i for i in ended(root, before) if any((jobs / i / name).exists() for name in _WORK)]


def _folders(root: Path) -> Iterator[Path]:
    return (root / "jobs").glob("batch_*")


def _is_older(path: Path, before: float) -> bool:
    try:
        return path.stat().st_ctime < before
    except FileNotFoundError:
        return False
