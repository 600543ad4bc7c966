"""Where calls go among equal targets, over a trace of real conversations, in virtual time.

    python benchmarks/target_choice.py TRACE [TARGETS] [BLOCKS]

TRACE is a file of JSON lines (``.gz`` too) with ``arrival_s``, ``output_tokens`` and ``hash_ids``,
the ids of a prompt's blocks of 512 tokens, as the Mooncake traces have them. A target reads 8,000
prompt tokens a second, one prompt after the other, writes 50 tokens a second for each call, and
keeps the newest BLOCKS. Prints, for each way to choose: the share of blocks that were found, the
most calls at one target, and the time to the first token. ``decided`` is the gateway's own choice;
its key is here what comes after the first block, which all calls of that trace share.
"""

import gzip
import heapq
import json
import random
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

from gateway.core.targets import Timeouts
from gateway.policy.target import RetryPolicy, TargetPolicy
from gateway.routing.affinity import DisplacedConversations, home_of
from gateway.routing.load_balancing import choose_home, choose_quick
from gateway.routing.route import Route
from gateway.routing.state import TargetState

_BLOCK = 512
_READ, _WRITE = 8000, 50
Choose = Callable[[int, float], Route]


class Replay:
    """Targets that are as busy as the calls sent to them make them."""

    def __init__(self, targets: int, blocks: int) -> None:
        self.routes = [_route(f"t{number}") for number in range(targets)]
        self.seconds: list[float] = []
        self.found = self.asked = self.peak = 0
        self._blocks = blocks
        self._kept: dict[Route, OrderedDict[int, None]] = {r: OrderedDict() for r in self.routes}
        self._free_at = dict.fromkeys(self.routes, 0.0)
        self._events: list[tuple[float, int, str, Route]] = []

    def run(self, calls: list[dict[str, Any]], choose: Choose) -> str:
        """All calls in their order; a line of figures."""
        for call in calls:
            now = call["arrival_s"]
            while self._events and self._events[0][0] <= now:
                _, _, name, route = heapq.heappop(self._events)
                setattr(route.state, name, getattr(route.state, name) - 1)
            key = crc32(repr(call["hash_ids"][:2]).encode())
            self._serve(choose(key, now), call, now)
        ordered = sorted(self.seconds)
        mean, middle = sum(ordered) / len(ordered), ordered[len(ordered) // 2]
        high = ordered[len(ordered) * 99 // 100]
        share = self.found / self.asked
        return f"{share:6.1%} {self.peak:6} {mean:8.2f} {middle:8.2f} {high:8.2f}"

    def _serve(self, route: Route, call: dict[str, Any], now: float) -> None:
        ids: list[int] = call["hash_ids"]
        kept = self._kept[route]
        found = next((n for n, block in enumerate(ids) if block not in kept), len(ids))
        for block in ids:
            kept[block] = None
            kept.move_to_end(block)
            if len(kept) > self._blocks:
                kept.popitem(last=False)
        first = max(self._free_at[route], now) + (len(ids) - found) * _BLOCK / _READ
        self._free_at[route] = first
        self.found += found
        self.asked += len(ids)
        self.seconds.append(first - now)
        route.state.running += 1
        route.state.prefilling += 1
        route.state.streamed.seen(first - now, now)
        self.peak = max(self.peak, route.state.running)
        number = len(self.seconds)
        heapq.heappush(self._events, (first, number, "prefilling", route))
        done = first + call["output_tokens"] / _WRITE
        heapq.heappush(self._events, (done, number, "running", route))


def _route(name: str) -> Route:
    policy = TargetPolicy.model_validate({"base_url": "http://x/v1", "models": ["m"]})
    seed = crc32(name.encode())
    state = TargetState(name, policy)
    return Route(name, "m", "vllm", Timeouts(), RetryPolicy(), state, seed=seed)


def _ways(routes: list[Route]) -> dict[str, Choose]:
    away = DisplacedConversations()
    return {
        "random": lambda _key, _now: random.choice(routes),  # noqa: S311 - a benchmark
        "two": lambda _key, now: choose_quick(routes, now, stream=True),
        "home": lambda key, _now: home_of(key, routes),
        "decided": lambda key, _now: choose_home(key, routes, away),
    }


def main() -> None:
    """Replay the trace once for each way to choose."""
    path = Path(sys.argv[1])
    targets, blocks = (int(text) for text in [*sys.argv[2:], "8", "1500"][:2])
    packed = path.read_bytes()
    text = gzip.decompress(packed) if path.suffix == ".gz" else packed
    calls = [json.loads(line) for line in text.split(b"\n") if line]
    print(f"{len(calls)} calls, {targets} targets, {blocks} blocks")  # noqa: T201
    print("            found   peak  mean s    p50 s    p99 s")  # noqa: T201
    for way in ("random", "two", "home", "decided"):
        random.seed(1)
        replay = Replay(targets, blocks)
        print(f"{way:10}", replay.run(calls, _ways(replay.routes)[way]))  # noqa: T201


if __name__ == "__main__":
    main()
