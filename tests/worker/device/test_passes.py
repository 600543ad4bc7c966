"""Passes at padded sizes."""

import torch

from gateway.worker.device.model import Batch
from gateway.worker.device.passes import Passes


def _passes(seen: list[Batch]) -> Passes:
    def body(batch: Batch) -> torch.Tensor:
        seen.append(batch)
        return batch.tokens[:, None].float()

    table = torch.zeros(4, 2, dtype=torch.int32)
    return Passes(body, table, sizes=(2, 4), block=1, fill=(9, 3, 0))


def test_inputs_are_padded_to_the_next_size() -> None:
    """With tokens of the slot that belongs to nobody."""
    seen: list[Batch] = []
    hidden = _passes(seen).run([5, 6, 7], [0, 1, 2], [10, 11, 12])
    assert hidden[:3, 0].tolist() == [5, 6, 7]
    assert seen[0].tokens.tolist() == [5, 6, 7, 9]
    assert seen[0].slots.tolist() == [0, 1, 2, 3]
    assert seen[0].positions.tolist() == [10, 11, 12, 0]


def test_more_than_the_largest_size_is_run_as_it_is() -> None:
    """Without padding."""
    seen: list[Batch] = []
    _passes(seen).run([1, 2, 3, 4, 5], [0] * 5, [0, 1, 2, 3, 4])
    assert seen[0].tokens.tolist() == [1, 2, 3, 4, 5]
