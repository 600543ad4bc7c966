"""Both lanes on simulated engines in processes of their own: people who talk, rows that run."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from statistics import median
from types import TracebackType
from typing import Any, Self

import aiohttp
import httpx
import orjson

from tests.support.batch import BatchClient, chat_line, ids, usage_of
from tests.support.meter import delivered
from tests.support.ports import free_port
from tests.support.serve import RunningHeadway, wait_for

PROMPT, ANSWER = 400, 32
_TALK = {"stream": True, "max_tokens": 16}
_WORDS = "x" * 400
_FILLER = "y" * 4 * PROMPT


class EngineProcess:
    """``headway bench engine`` on a port that it keeps, however often it dies."""

    def __init__(self, *arguments: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._argv = [sys.executable, "-m", "gateway", "bench", "engine", "--model", "m"]
        self._argv += ["--port", str(self.port), *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it and wait until it answers."""
        self._process = subprocess.Popen(
            self._argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for(self._alive, 60, "the engine")
        return self

    def kill(self) -> None:
        """SIGKILL; does nothing to one that does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def change(self, **members: Any) -> None:
        """Change it while it runs."""
        httpx.post(f"{self.url}/control", json=members).raise_for_status()

    def state(self) -> dict[str, Any]:
        """What runs there, and how it is set."""
        found: dict[str, Any] = httpx.get(f"{self.url}/control").raise_for_status().json()
        return found

    def busy(self) -> int:
        """Calls and rows that are there."""
        state = self.state()
        return int(state["running"] + state["waiting"])

    def _alive(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health").is_success
        except httpx.TransportError:
            return False

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.kill()


@dataclass
class Talk:
    """One streamed call: when it began, its waits, and what went wrong."""

    at: float
    ttft: float = 0.0
    gap: float = 0.0
    fault: str = ""


@dataclass
class People:
    """``callers`` of a gateway, each with one stream after the other over a connection of its own.

    A context: they talk as long as it is open.
    """

    running: RunningHeadway
    callers: int = 3
    model: str = "m"
    pause: float = 0.1
    talks: list[Talk] = field(default_factory=list)

    def since(self, at: float, until: float = float("inf")) -> list[Talk]:
        """The calls that began in that time and have ended."""
        return [talk for talk in list(self.talks) if at <= talk.at < until]

    def __enter__(self) -> Self:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._talk()))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    async def _talk(self) -> None:
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        headers = {"authorization": f"Bearer {self.running.key}"}
        numbers = count()
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            await asyncio.gather(*(self._caller(session, numbers) for _ in range(self.callers)))

    async def _caller(self, session: aiohttp.ClientSession, numbers: Any) -> None:
        while not self._ended.is_set():
            talk = Talk(time.monotonic())
            try:
                await self._stream(session, talk, next(numbers))
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                talk.fault = repr(error)
            self.talks.append(talk)
            await asyncio.sleep(self.pause)

    async def _stream(self, session: aiohttp.ClientSession, talk: Talk, number: int) -> None:
        messages = [{"role": "user", "content": f"{number} {_WORDS}"}]
        times = []
        async with session.post(
            f"{self.running.base_url}/chat/completions",
            json={**_TALK, "model": self.model, "messages": messages},
        ) as answer:
            if answer.status != httpx.codes.OK:
                raise ValueError(f"{answer.status}: {await answer.text()}")
            async for line in answer.content:
                if line.startswith(b"data: {"):
                    event = orjson.loads(line[6:])
                    if "error" in event:
                        raise ValueError(line.decode())
                    if (event.get("choices") or [{}])[0].get("delta", {}).get("content"):
                        times.append(time.monotonic())
        if not times:
            raise ValueError("no token")
        talk.ttft = times[0] - talk.at
        talk.gap = (times[-1] - times[0]) / max(1, len(times) - 1)


def faults(talks: list[Talk]) -> list[str]:
    """What went wrong in them."""
    return [talk.fault for talk in talks if talk.fault]


def ttft(talks: list[Talk], share: float = 0.9) -> float:
    """That quantile of the time to the first token, of those that had one."""
    waits = sorted(talk.ttft for talk in talks if not talk.fault)
    return waits[min(len(waits) - 1, int(share * len(waits)))]


def gap(talks: list[Talk]) -> float:
    """The median over calls of the mean gap between tokens."""
    return median(talk.gap for talk in talks if not talk.fault)


@dataclass
class Rows:
    """A batch of ``count`` rows of one size at a gateway."""

    running: RunningHeadway
    count: int
    id: str = ""

    def start(self) -> Self:
        """Create the batch and wait for the first result."""
        self.create()
        wait_for(lambda: self.done() > 0, 60, "a first row")
        return self

    def create(self) -> Self:
        """Create the batch."""
        self._client = BatchClient(self.running)
        self.id = self._client.start(
            chat_line(str(number), f"{number} {_FILLER}", max_tokens=ANSWER)
            for number in range(self.count)
        )["id"]
        return self

    def done(self) -> int:
        """Rows with a result so far."""
        return self._client.done(self.id)

    def rate(self, seconds: float) -> float:
        """Rows a second, for so long from now on."""
        at, before = time.monotonic(), self.done()
        time.sleep(seconds)
        done = self.done()
        assert done < self.count, "too few rows"
        return (done - before) / (time.monotonic() - at)

    def whole(self, timeout: float) -> None:
        """Waits for the end: every row once, none failed, and the meter is what was delivered."""
        batch = self._client.ended(self.id, timeout)
        total = {"completed": self.count, "failed": 0, "total": self.count}
        assert batch["request_counts"] == total
        output = self._client.output(batch)
        assert ids(output) == sorted(map(str, range(self.count)))
        assert usage_of(output)[1] == self.count * ANSWER
        wait_for(lambda: delivered(self.running) == usage_of(output), 10, "the meter")


@dataclass
class Seen:
    """Both lanes over some time: rows a second, and the calls that began in it."""

    rate: float
    talks: list[Talk]

    @property
    def ttft(self) -> float:
        """The 90th percentile of the time to the first token."""
        return ttft(self.talks)

    @property
    def gap(self) -> float:
        """The usual gap between tokens."""
        return gap(self.talks)

    def __repr__(self) -> str:
        if len(self.talks) == len(faults(self.talks)):
            return f"{self.rate:.1f} rows/s, no call"
        return f"{self.rate:.1f} rows/s, {1000 * self.ttft:.0f} ms, {1000 * self.gap:.1f} ms"


@dataclass
class Lanes:
    """Looks at both lanes of a gateway, for ``window`` seconds at a time."""

    people: People
    rows: Rows
    window: float

    def look(self) -> Seen:
        """Now."""
        at = time.monotonic()
        rate = self.rows.rate(self.window)
        return Seen(rate, self.people.since(at))

    def settle(self, well: Callable[[Seen], bool], within: float) -> Seen:
        """Look until all is well, for so long at most."""
        end, found = time.monotonic() + within, [self.look()]
        while not (found[-1].talks and not faults(found[-1].talks) and well(found[-1])):
            assert time.monotonic() < end, f"not well in {within} s: {found}"
            found.append(self.look())
        return found[-1]
