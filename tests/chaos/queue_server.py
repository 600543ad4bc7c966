"""The product's supervised queue server as a process of its own, for rounds with a proxy."""

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

from gateway.core.settings import Settings
from gateway.store.embedded import EmbeddedServer


async def _watch(server: EmbeddedServer) -> None:
    watching = asyncio.ensure_future(server.watch())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, watching.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await watching


def main() -> None:
    """Keep a server for a data directory until SIGTERM."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    server = EmbeddedServer(folder, Settings(data_dir=folder))
    server.start()
    try:
        asyncio.run(_watch(server))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
