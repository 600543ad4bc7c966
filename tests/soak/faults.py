"""The targets of a soak: a share of their answers is broken, and one of them comes and goes."""

import asyncio
import random
import time
from dataclasses import dataclass, field

from tests.support import answers
from tests.support.answers import Pace, Shape
from tests.support.exchange import Exchange
from tests.support.scripts import Script, Sse, chat_chunk, error, hang_up, never, raw
from tests.support.upstream import ScriptedUpstream

USUAL = Pace(0.02, 0.005)
SLOW = Pace(0.02, 0.25)
_TOKENS = [chat_chunk(f"w{n} ") for n in range(4)]
_ERROR = {"error": {"message": "boom", "type": "server_error", "param": None, "code": "boom"}}
FAULTS: dict[str, Script] = {
    "500": error(500),
    "503": error(503),
    "html": raw(b"<h1>bad gateway</h1>", 502, headers={"content-type": "text/html"}),
    "closed": hang_up(),
    "reset": hang_up(reset=True),
    "silent": never(),
    "cut": Sse(_TOKENS, end="close", pause=0.01),
    "stall": Sse(_TOKENS, end="hang", pause=0.01),
    "error in the stream": Sse([*_TOKENS, _ERROR], pause=0.01),
}


@dataclass
class Faulty:
    """A script: ``share`` of the answers is one of ``FAULTS``; ``struck`` says which calls.

    ``pace`` is that of the others.
    """

    chance: random.Random
    share: float
    pace: Pace = field(default_factory=lambda: USUAL)
    seen: set[str] = field(default_factory=set)
    struck: dict[str, str] = field(default_factory=dict)

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one call."""
        call = exchange.seen.headers["x-request-id"]
        self.seen.add(call)
        if self.chance.random() < self.share:
            self.struck[call] = self.chance.choice(list(FAULTS))
            await FAULTS[self.struck[call]](exchange)
        else:
            await answers.generate(exchange, Shape(chat=True), self.pace)


@dataclass
class Flapper:
    """Takes a target away for ``down`` seconds after each ``up``; ``gaps`` are when it was away."""

    target: ScriptedUpstream
    up: float
    down: float
    gaps: list[tuple[float, float]] = field(default_factory=list)

    async def run(self) -> None:
        """Come and go until cancelled; at the end it is there."""
        while True:
            await asyncio.sleep(self.up)
            began = time.monotonic()
            self.gaps.append((began, float("inf")))
            try:
                await asyncio.to_thread(self.target.refuse)
                await asyncio.sleep(self.down)
            finally:
                self.target.start()
                self.gaps[-1] = (began, time.monotonic())

    def away_between(self, begin: float, end: float) -> bool:
        """Whether the target was away at any moment of that time, or just before."""
        return any(begin < up + 1 and down < end for down, up in self.gaps)
