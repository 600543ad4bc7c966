"""A fuzz run: a gateway, a target that answers oddly, and calls until the time is over."""

import asyncio
import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.metering.recovery import read_records
from gateway.providers.sse import EventSplitter
from tests.fuzz.mutate import changed_bytes, pieces, some_body
from tests.support.exchange import Exchange
from tests.support.gateway import chat_body
from tests.support.plain_http import ask, end_of, id_of, status_of
from tests.support.scripts import chat_chunk, usage_chunk
from tests.support.serve import headway
from tests.support.upstream import ScriptedUpstream

_LIMIT = 20.0
_INTERNAL = 500
_STREAM = b"".join(
    b"data: " + json.dumps(event).encode() + b"\n\n"
    for event in [
        chat_chunk("", role="assistant"),
        chat_chunk("hé"),
        chat_chunk("日本 🙂"),
        chat_chunk("b"),
        chat_chunk(finish="stop"),
        usage_chunk(3, 3),
    ]
)
_WHOLE: dict[str, Any] = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "text": "a",
            "message": {"role": "assistant", "content": "a"},
            "finish_reason": "stop",
        }
    ],
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}


@dataclass
class Outcome:
    """``faults`` are what must not be, each in a sentence with what was sent."""

    calls: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class OddTarget:
    """Answers well, or with a changed stream or body when the call says ``odd``."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.seen: Counter[str] = Counter()

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one call."""
        seen, chance = exchange.seen, self._chance
        self.seen[seen.headers["x-request-id"]] += 1
        odd = b'"odd"' in seen.body
        if seen.json.get("stream") is not True:
            body = json.dumps(_WHOLE).encode()
            exchange.full(200, changed_bytes(chance, body) if odd else body, _JSON)
            return
        text = _STREAM + b"data: [DONE]\n\n"
        exchange.head(200, {"content-type": "text/event-stream"})
        for piece in pieces(chance, changed_bytes(chance, text)) if odd else [text]:
            exchange.chunk(piece)
            await asyncio.sleep(0)
        exchange.end()


_JSON = {"content-type": "application/json"}


def fuzz(seconds: float, seed: int, folder: Path) -> Outcome:
    """Run in an empty folder."""
    chance, outcome = random.Random(seed), Outcome()
    upstream = ScriptedUpstream().start()
    target = OddTarget(chance)
    upstream.on(lambda _: True, target)
    policy = {
        "targets": {
            "up": {
                "base_url": upstream.url,
                "models": ["m"],
                "timeouts": {"first_byte": "5s", "idle": "2s"},
                "retry": {"attempts": 1},
                "breaker": {"failures": 100, "pause": "1ms", "longest": "1ms"},
            }
        }
    }
    try:
        with headway(folder, policy, {"HEADWAY_DISPATCHERS": "0"}) as running:
            port = int(running.root.rpartition(":")[2])
            asyncio.run(_calls(seconds, chance, port, outcome, upstream))
        ids = Counter(r.intent.id for r in read_records(running.data_dir / "journal"))
    finally:
        upstream.stop()
    outcome.faults += [f"call {call} is not in the ledger" for call in target.seen if not ids[call]]
    outcome.faults += [f"call {call} is there {n} times" for call, n in ids.items() if n > 1]
    return outcome


async def _calls(
    seconds: float,
    chance: random.Random,
    port: int,
    outcome: Outcome,
    upstream: ScriptedUpstream,
) -> None:
    end = time.monotonic() + seconds

    async def caller() -> None:
        while time.monotonic() < end:
            if chance.random() < 0.5:
                await _call(port, *some_body(chance), outcome)
            else:
                body = chat_body("odd", stream=chance.random() < 0.8)
                await _call(port, "/v1/chat/completions", json.dumps(body).encode(), outcome)
            _split(chance, outcome)
            upstream.requests.clear()

    await asyncio.gather(*(caller() for _ in range(8)))


async def _call(port: int, path: str, body: bytes, outcome: Outcome) -> None:
    """One call: in time, no 500, a whole answer or an error in the API's form."""
    got, found = bytearray(), ""
    try:
        async with asyncio.timeout(_LIMIT):
            await ask(port, path, body, got)
    except TimeoutError:
        found = "hung"
    end, status = end_of(got), status_of(got)
    outcome.calls[f"{status} {end}"] += 1
    if end == "neither":
        found = found or "neither complete nor an error"
    if status == _INTERNAL or not id_of(got):
        found = found or f"status {status}"
    if found:
        outcome.faults.append(f"{found}: POST {path} {body[:300]!r} gave {bytes(got)[-300:]!r}")


def _split(chance: random.Random, outcome: Outcome) -> None:
    """However a text is cut, its events are the same."""
    text = changed_bytes(chance, _STREAM)
    whole, cut = _events([text]), _events(pieces(chance, text))
    if whole != cut:
        outcome.faults.append(f"cut anew it is another stream: {text!r}")


def _events(parts: list[bytes]) -> list[bytes]:
    splitter = EventSplitter()
    return [event for part in parts for event in splitter.feed(part)] + list(splitter.end())
