"""Runs one step on the model: plan to tensors, tensors to tokens."""

from collections.abc import Callable
from collections.abc import Sequence as Many

import torch

from gateway.worker.injected import fail_on_purpose
from gateway.worker.kv_cache import KVCache
from gateway.worker.models.llama import Forward, Llama, PromptPart, SlotRange
from gateway.worker.options import Faults
from gateway.worker.sampler import Sampled, Sampler
from gateway.worker.scheduler import StepPlan
from gateway.worker.sequence import Sequence

_WIDTH_STEP = 32
_CALL_TOKENS = 1024  # keys that are read in the time of one more call


class ModelRunner:
    """The model with its cache and sampler."""

    def __init__(self, model: Llama, slots: int, context: int, faults: Faults) -> None:
        shape = model.shape
        self._model = model
        self._sampler = Sampler()
        self._faults = faults
        self._cache = KVCache(
            layers=shape.layers,
            slots=slots,
            kv_heads=shape.kv_heads,
            context=context,
            head_dim=shape.head_dim,
            dtype=model.dtype,
        )

    def run(
        self, plan: StepPlan, between: Callable[[], None] | None = None
    ) -> list[tuple[Sequence, Sampled]]:
        """One token for each decoding row and for each prompt that is read to its end.

        Running the same plan again is harmless. ``between`` is called after each layer and may run
        a plan of other sequences. Raises MemoryError when it does not fit.
        """
        fail_on_purpose(plan, self._faults)
        with torch.inference_mode():
            step, rows = self._forward(plan)
            logits = self._model.forward(step, self._cache, between)
            if not rows:
                return []
            return list(zip(rows, self._sampler.sample(logits, rows), strict=True))

    def _forward(self, plan: StepPlan) -> tuple[Forward, list[Sequence]]:
        tokens = [row.last_token for row in plan.decodes]
        slots = [row.slot for row in plan.decodes]
        positions = [row.length - 1 for row in plan.decodes]
        wanted, rows = list(range(len(tokens))), list(plan.decodes)
        prompts = []
        for sequence, count in plan.prompts:
            start = sequence.computed
            prompts.append(PromptPart(len(tokens), sequence.slot, start, count))
            tokens += sequence.piece(start, count)
            slots += [sequence.slot] * count
            positions += range(start, start + count)
            if start + count == sequence.length:
                wanted.append(len(tokens) - 1)
                rows.append(sequence)
        step = Forward(
            torch.tensor(tokens),
            torch.tensor(slots),
            torch.tensor(positions),
            self._ranges(plan.decodes),
            prompts,
            torch.tensor(wanted, dtype=torch.long),
        )
        return step, rows

    def _ranges(self, rows: Many[Sequence]) -> list[SlotRange]:
        """Runs of neighbouring slots; each is one attention call without copying the cache.

        A run also ends where one much longer row would make all others of it look wide.
        """
        if not rows:
            return []
        lengths = torch.tensor([row.length for row in rows])
        ranges, at = [], 0
        while at < len(rows):
            count, width = self._run(rows, at)
            outside = torch.arange(width)[None] >= lengths[at : at + count, None]
            mask = torch.zeros(count, width, dtype=self._model.dtype)
            mask.masked_fill_(outside, -torch.inf)
            ranges.append(SlotRange(at, rows[at].slot, count, width, mask[:, None, None]))
            at += count
        return ranges

    def _run(self, rows: Many[Sequence], at: int) -> tuple[int, int]:
        """Rows and width of the run that starts at ``at``."""
        count, width = 1, self._width(rows[at])
        for row in rows[at + 1 :]:
            wider = max(width, self._width(row))
            wasted = count * (wider - width) + wider - self._width(row)
            if row.slot != rows[at].slot + count or wasted > _CALL_TOKENS:
                break
            count, width = count + 1, wider
        return count, width

    def _width(self, row: Sequence) -> int:
        return min(-(-row.length // _WIDTH_STEP) * _WIDTH_STEP, self._cache.context)
