"""``headway dispatch`` on its own."""

from pathlib import Path

from tests.support.serve import headway_command


def test_without_a_queue_server_it_says_so(tmp_path: Path) -> None:
    """One sentence, exit 78."""
    ended = headway_command(["dispatch", "--data-dir", str(tmp_path)])
    assert ended.returncode == 78
    assert "HEADWAY_REDIS_URL" in ended.stderr
