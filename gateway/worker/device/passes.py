"""Passes over the model at padded sizes; on a GPU each is recorded once and replayed.

A replay costs one launch in place of hundreds. A pass larger than all sizes runs as it is: its
computing takes longer than its launches.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gateway.worker.device.model import Batch


class Passes:
    """Runs ``body`` on up to the largest of ``sizes`` tokens by record, on more without.

    Inputs go through one buffer here and one on the device, so a pass must have ended before the
    next of the same object begins. ``fill`` is the token, slot and position of padding.
    """

    def __init__(
        self,
        body: Callable[[Batch], torch.Tensor],
        table: torch.Tensor,
        *,
        sizes: Sequence[int],
        block: int,
        fill: tuple[int, int, int],
    ) -> None:
        self._body = body
        self._table = table
        self._sizes = sorted(sizes)
        self._block = block
        self._fill = fill
        self._on_gpu = table.device.type == "cuda"
        most = 3 * self._sizes[-1]
        self._host = torch.zeros(most, dtype=torch.int32, pin_memory=self._on_gpu)
        self._there = torch.zeros(most, dtype=torch.int32, device=table.device)
        self._out: torch.Tensor | None = None
        self._records: dict[int, torch.cuda.CUDAGraph] = {}

    def record(self, pool: Any = None) -> None:
        """Record all sizes, the largest first, so that the others fit in its memory, ``pool``."""
        if not self._on_gpu:
            return
        for size in reversed(self._sizes):
            batch = self._batch(self._there[: 3 * size])
            batch.slots.fill_(self._fill[1])
            hidden = self._body(batch)  # compiles what has not run before
            if self._out is None:
                self._out = torch.empty_like(hidden)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                self._out[:size].copy_(self._body(batch))
            self._records[size] = graph

    def run(
        self, tokens: Sequence[int], slots: Sequence[int], positions: Sequence[int]
    ) -> torch.Tensor:
        """The hidden states, at least one a token. They last until the next run."""
        count, rows = len(tokens), (tokens, slots, positions)
        size = next((size for size in self._sizes if size >= count), None)
        if size is None:
            flat = torch.tensor([*tokens, *slots, *positions], dtype=torch.int32)
            return self._body(self._batch(flat.to(self._table.device)))
        host, there = self._host[: 3 * size], self._there[: 3 * size]
        for row, values, fill in zip(host.view(3, -1).numpy(), rows, self._fill, strict=True):
            row[:count], row[count:] = values, fill
        there.copy_(host, non_blocking=True)
        if size not in self._records or self._out is None:
            return self._body(self._batch(there))
        self._records[size].replay()
        return self._out[:size]

    def _batch(self, inputs: torch.Tensor) -> Batch:
        tokens, slots, positions = inputs.view(3, -1).unbind(0)
        return Batch(tokens, slots, positions, self._table, self._block)
