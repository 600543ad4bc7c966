"""``headway dispatch`` on its own."""

from pathlib import Path

from gateway.bootstrap.dispatch import _pools
from gateway.policy.model import Policy
from gateway.store.keys import shard_of
from tests.support.serve import headway_command

_POLICY = {
    "targets": {
        "a": {"base_url": "http://127.0.0.1:1/v1", "models": ["m", "n"]},
        "b": {
            "base_url": "http://127.0.0.1:2/v1",
            "models": ["m", "o"],
            "lanes": {"batch": {"max_in_flight": 3}},
        },
        "c": {
            "base_url": "http://127.0.0.1:3/v1",
            "models": ["p"],
            "lanes": {"batch": {"max_in_flight": 0}},
        },
    }
}


def test_models_of_one_target_share_its_places() -> None:
    """One pool per target, and none for a target that takes no batch work."""
    sizes: list[int] = []

    def make(size: int) -> object:
        sizes.append(size)
        return object()

    pools = _pools(Policy.model_validate(_POLICY), make)  # type: ignore[arg-type]  # only counted
    assert pools[shard_of("m")] is pools[shard_of("n")]
    assert pools[shard_of("o")] is not pools[shard_of("m")]
    assert shard_of("p") not in pools
    assert sorted(sizes) == [3, 64]


def test_without_a_queue_server_it_says_so(tmp_path: Path) -> None:
    """One sentence, exit 78."""
    ended = headway_command(["dispatch", "--data-dir", str(tmp_path)])
    assert ended.returncode == 78
    assert "HEADWAY_REDIS_URL" in ended.stderr
