"""Which shards hold work that will be late as things are."""

from collections.abc import Iterable


class Hurry:
    """Told by the forecast, asked by the lanes."""

    def __init__(self) -> None:
        self._late: set[str] = set()

    def note(self, shard: str, late: bool) -> None:
        """Whether anything in ``shard`` will be late."""
        (self._late.add if late else self._late.discard)(shard)

    def any(self, shards: Iterable[str]) -> bool:
        """Whether anything in one of ``shards`` will be late."""
        return not self._late.isdisjoint(shards)
