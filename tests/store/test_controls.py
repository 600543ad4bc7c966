"""What an operator set by hand is on disk."""

from pathlib import Path

from gateway.store.blobs import LocalBlobs
from gateway.store.control import Pause, Scope
from gateway.store.controls import Control, Controls


async def test_a_batch(tmp_path: Path) -> None:
    """Each word is kept beside the others; a batch of which nothing was said has none."""
    controls = Controls(LocalBlobs(tmp_path))
    assert await controls.of_batch("batch_1") == Control()
    await controls.note_batch("batch_1", paused=True)
    await controls.note_batch("batch_1", priority=5)
    await controls.note_batch("batch_3", priority=5)
    assert await controls.paused_batches() == ["batch_1"]
    await controls.note_batch("batch_1", paused=False)
    again = Controls(LocalBlobs(tmp_path))
    assert await again.of_batch("batch_1") == Control(paused=False, priority=5)
    assert await again.of_batch("batch_2") == Control()


async def test_pauses(tmp_path: Path) -> None:
    """The latest word of each scope, whatever a tenant is called."""
    controls = Controls(LocalBlobs(tmp_path))
    assert await controls.pauses() == []
    odd, other = Scope("tenant", "../a b/"), Scope("tenant", "b")
    await controls.note_pause(odd, ["m.0", "n.0"], paused=True)
    await controls.note_pause(other, ["m.0"], paused=True)
    await controls.note_pause(other, ["m.0"], paused=False)
    await controls.note_pause(Scope(), ["n.0"], paused=True)
    found = sorted(await controls.pauses(), key=lambda pause: (pause.scope.kind, pause.scope.name))
    assert found == [
        Pause(Scope(), ("n.0",), True),
        Pause(odd, ("m.0", "n.0"), True),
        Pause(other, ("m.0",), False),
    ]
