"""Runs one step on a device: decoding rows in one pass, prompts in another, one look at the end."""

from collections.abc import Callable
from collections.abc import Sequence as Many

import torch

from gateway.core.errors import ConfigError, StartError
from gateway.worker.device.model import Ops, PagedLlama
from gateway.worker.device.passes import Passes
from gateway.worker.device.plain import PlainOps
from gateway.worker.injected import fail_on_purpose
from gateway.worker.models.llama import Llama
from gateway.worker.options import Faults
from gateway.worker.pages import PAGE, PageTable, pages_for
from gateway.worker.sampler import Sampled, Sampler
from gateway.worker.scheduler import StepPlan
from gateway.worker.sequence import Sequence

# Tokens of a prompt that are one program's; prompts are padded to a multiple.
BLOCK = 32
_ROWS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512)
_TOKENS = (64, 128, 192, 256, 384, 512, 640, 768, 896, 1024, 1280, 1536, 1792, 2048)
_MEMORY_SHARE = 0.88  # the rest is for what a pass needs while it runs
_WIDTHS = (16, 32, 64, 128, 256)


class PagedRunner:
    """A model on its device with cache and sampler.

    ``pages`` of the cache; None takes what memory there is. Raises ConfigError when a sequence of
    ``context`` tokens would not fit, or the kernels cannot run the model.
    """

    def __init__(
        self, model: Llama, slots: int, context: int, faults: Faults, *, pages: int | None = None
    ) -> None:
        self._device = model.embedding.device
        self._faults = faults
        self._sampler = Sampler()
        self.room = (_pages(model) if pages is None else pages) - 1
        if self.room < pages_for(context):
            raise ConfigError(f"the device has no memory for a sequence of {context} tokens")
        width = pages_for(context)
        gpu = self._device.type == "cuda"
        self._table_here = torch.zeros(slots + 1, width, dtype=torch.int32, pin_memory=gpu)
        self._table = torch.zeros(slots + 1, width, dtype=torch.int32, device=self._device)
        self._pages = PageTable(self._table_here.numpy(), self.room + 1)
        self._model = PagedLlama(model, _ops(model), _cache(model, self.room + 1))
        fill = (0, slots, 0)
        rows = [size for size in _ROWS if size < slots] + [slots]
        with torch.inference_mode():
            self._decode, self._read = (
                Passes(self._model.hidden, self._table, sizes=sizes, block=block, fill=fill)
                for sizes, block in ((rows, 1), (_TOKENS, BLOCK))
            )
            pool = torch.cuda.graph_pool_handle() if gpu else None
            self._read.record(pool)
            self._decode.record(pool)

    def run(
        self, plan: StepPlan, between: Callable[[], None] | None = None
    ) -> list[tuple[Sequence, Sampled]]:
        """One token for each decoding row and for each prompt that is read to its end.

        Running the same plan again is harmless. ``between`` is never called: the device is told
        the whole step at once. Raises MemoryError when it does not fit, StartError when the device
        has failed for good.
        """
        fail_on_purpose(plan, self._faults)
        del between
        try:
            with torch.inference_mode():
                return self._run(plan)
        except torch.AcceleratorError as error:
            raise StartError(f"the device failed: {error}") from error

    def _run(self, plan: StepPlan) -> list[tuple[Sequence, Sampled]]:
        for row in plan.decodes:
            self._pages.cover(row, row.length)
        for sequence, count in plan.prompts:
            self._pages.cover(sequence, sequence.computed + count)
        if self._pages.changed:
            self._table.copy_(self._table_here, non_blocking=True)
            self._pages.changed = False
        rows, wanted = list(plan.decodes), []
        if plan.decodes:
            wanted.append(self._decoded(plan.decodes))
        if plan.prompts:
            hidden, ends, ended = self._prompts(plan.prompts)
            rows += ended
            wanted.append(hidden[ends])
        if not rows:
            self._wait()
            return []
        logits = self._model.logits(wanted[0] if len(wanted) == 1 else torch.cat(wanted))
        found = list(zip(rows, self._sampler.sample(logits, rows), strict=True))
        self._wait()
        return found

    def _decoded(self, rows: Many[Sequence]) -> torch.Tensor:
        hidden = self._decode.run(
            [row.last_token for row in rows],
            [row.slot for row in rows],
            [row.length - 1 for row in rows],
        )
        return hidden[: len(rows)]

    def _prompts(
        self, parts: Many[tuple[Sequence, int]]
    ) -> tuple[torch.Tensor, list[int], list[Sequence]]:
        """Hidden states, where the prompts that end now have their last one, and those prompts."""
        tokens: list[int] = []
        slots: list[int] = []
        positions: list[int] = []
        ends, ended = [], []
        for sequence, count in parts:
            start, padding = sequence.computed, -count % BLOCK
            tokens += sequence.piece(start, count) + [0] * padding
            slots += [sequence.slot] * count + [len(self._table) - 1] * padding
            positions += [*range(start, start + count), *[0] * padding]
            if start + count == sequence.length:
                ends.append(len(tokens) - padding - 1)
                ended.append(sequence)
        return self._read.run(tokens, slots, positions), ends, ended

    def _wait(self) -> None:
        """Until the device has read its inputs and ended; the next step writes them anew."""
        if self._device.type == "cuda":
            torch.cuda.synchronize()


def _ops(model: Llama) -> Ops:
    """Kernels on a GPU, plain operations elsewhere."""
    if model.embedding.device.type != "cuda":
        return PlainOps()
    if model.shape.head_dim not in _WIDTHS:
        raise ConfigError(f"the kernels have no heads of {model.shape.head_dim}; use --device cpu")
    from gateway.worker.device.kernels import KernelOps  # noqa: PLC0415 - Triton is there on GPUs

    return KernelOps()


def _pages(model: Llama) -> int:
    """Pages in what is left of the memory."""
    free, total = torch.cuda.mem_get_info(model.embedding.device)
    left = free - (1 - _MEMORY_SHARE) * total
    return max(0, int(left // (_page_values(model) * model.shape.layers * model.dtype.itemsize)))


def _cache(model: Llama, pages: int) -> torch.Tensor:
    """(layers, tokens, keys and values, head_dim)."""
    shape = model.shape
    size = (shape.layers, pages * PAGE, 2 * shape.kv_heads, shape.head_dim)
    return torch.zeros(size, dtype=model.dtype, device=model.embedding.device)


def _page_values(model: Llama) -> int:
    return PAGE * 2 * model.shape.kv_heads * model.shape.head_dim
