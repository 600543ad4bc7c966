"""Removing stored responses whose time is over."""

from gateway.core.loops import keep_doing
from gateway.store.responses import ResponseStore


class ResponseSweeper:
    """A pass at once and one every ``every`` seconds."""

    def __init__(self, store: ResponseStore, every: float) -> None:
        self._store = store
        self._every = every

    async def run(self) -> None:
        """Go on until cancelled."""
        await keep_doing(self._store.sweep, "sweeping responses", every=self._every)
