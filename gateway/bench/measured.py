"""Everything the demo measured, as one value that table and checks read."""

from dataclasses import dataclass

from gateway.bench.batch_run import BatchResult
from gateway.bench.naive import Flood
from gateway.bench.timing import Latency
from gateway.core.usage import Usage


@dataclass(frozen=True, slots=True)
class Measured:
    """``alone``, ``naive`` and ``shared`` are the interactive calls in the three arms.

    ``single_speed`` is output tokens per second at batch size 1 on the first of the batch's own
    requests. The ``…_rows`` are mean running rows of the engine over the middle half of a run.
    ``metered`` and ``answered`` map lanes to tokens: as Headway recorded them, and as the answers
    themselves said.
    """

    alone: Latency
    naive: Latency
    shared: Latency
    single_speed: float
    batch: BatchResult
    shared_batch: BatchResult
    flood: Flood
    batch_rows: float
    shared_rows: float
    flood_rows: float
    metered: dict[str, Usage]
    answered: dict[str, Usage]

    @property
    def single_seconds(self) -> float:
        """What the batch would have taken at batch size 1."""
        return self.batch.usage.completion / self.single_speed
