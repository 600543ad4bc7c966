"""A swarm of failing dispatchers finds every broken variant of the queue's scripts."""

from collections.abc import Callable, Iterator

import pytest

from gateway.store import scripts
from gateway.store.client import StoreClient
from gateway.store.queue import QueueClient
from tests.faults.mutants import MUTANTS, Mutant
from tests.support.swarm import Swarm

_SEEDS = range(4)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Mutant], None]]:
    """Puts a mutant in the place of its script."""
    shipped = scripts._text

    def install(mutant: Mutant) -> None:
        whole = mutant.applied(shipped(mutant.script))
        monkeypatch.setattr(
            scripts, "_text", lambda name: whole if name == mutant.script else shipped(name)
        )
        scripts.queue_script.cache_clear()

    yield install
    scripts.queue_script.cache_clear()


async def _violations(store: StoreClient, seed: int) -> list[str]:
    await store.execute_command("FLUSHALL")
    return await Swarm(store, seed).run()


@pytest.mark.parametrize("seed", _SEEDS)
async def test_the_shipped_scripts_survive_a_swarm(store: StoreClient, seed: int) -> None:
    """Nothing lost, nothing twice, the meter exact, and the queue's own audit agrees."""
    assert await _violations(store, seed) == []
    assert await QueueClient(store).audit("m.0") == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
async def test_a_broken_script_is_caught(
    store: StoreClient, broken: Callable[[Mutant], None], mutant: Mutant
) -> None:
    """With one thing wrong, a swarm of some seed sees a loss, a repetition or a wrong meter."""
    broken(mutant)
    for seed in _SEEDS:
        if await _violations(store, seed):
            return
    pytest.fail(f"nobody noticed: {mutant.name}")
