"""Loss of what the queue server of a running gateway holds."""

import json

import redis

from tests.support.serve import RunningHeadway


def flush_all(running: RunningHeadway) -> None:
    """FLUSHALL, as an operator's mistake does it."""
    endpoint = json.loads((running.data_dir / "queue" / "endpoint.json").read_text())
    with redis.Redis(unix_socket_path=endpoint["socket"]) as client:
        client.flushall()
