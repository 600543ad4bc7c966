"""Runs one step on the model: plan to tensors, tensors to tokens."""

from collections.abc import Sequence as Many

import torch

from gateway.worker.kv_cache import KVCache
from gateway.worker.models.llama import Forward, Llama, PromptPart, SlotRange
from gateway.worker.options import Faults
from gateway.worker.sampler import Sampled, Sampler
from gateway.worker.scheduler import StepPlan
from gateway.worker.sequence import Sequence

_WIDTH_STEP = 32


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

    def run(self, plan: StepPlan) -> list[tuple[Sequence, Sampled]]:
        """One token for each decoding row and for each prompt that is read to its end.

        Running the same plan again is harmless. Raises MemoryError when it does not fit.
        """
        self._fail_on_purpose(plan)
        with torch.inference_mode():
            step, rows = self._forward(plan)
            if not rows:
                self._model.forward(step, self._cache)
                return []
            logits = self._model.forward(step, self._cache)
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
            tokens += sequence.prompt[start : start + count]
            slots += [sequence.slot] * count
            positions += range(start, start + count)
            if start + count == len(sequence.prompt):
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
        """Runs of neighbouring slots; each is one attention call without copying the cache."""
        ranges = []
        first = 0
        for at in range(1, len(rows) + 1):
            if at == len(rows) or rows[at].slot != rows[at - 1].slot + 1:
                ranges.append(self._range(first, rows[first:at]))
                first = at
        return ranges

    def _range(self, at: int, rows: Many[Sequence]) -> SlotRange:
        lengths = torch.tensor([row.length for row in rows])
        longest = max(row.length for row in rows)
        width = min(-(-longest // _WIDTH_STEP) * _WIDTH_STEP, self._cache.context)
        outside = torch.arange(width)[None] >= lengths[:, None]
        mask = torch.zeros(len(rows), width, dtype=self._model.dtype)
        mask.masked_fill_(outside, -torch.inf)
        return SlotRange(at, rows[0].slot, len(rows), width, mask[:, None, None])

    def _fail_on_purpose(self, plan: StepPlan) -> None:
        rows = [*plan.decodes, *(sequence for sequence, _ in plan.prompts)]
        faults = self._faults
        too_many = 0 < faults.oom_rows < len(rows)
        if too_many or 0 < faults.oom_tokens < sum(row.length for row in rows):
            raise MemoryError("injected")
