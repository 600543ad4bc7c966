"""The gateway is killed while many streams run: each call is in the ledger, whatever came of it."""

import asyncio
import json
import random
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.metering.record import CallRecord, CallStatus
from gateway.metering.recovery import read_records
from tests.support.answers import Pace
from tests.support.exchange import Seen
from tests.support.gateway import chat_body
from tests.support.serve import KEY, RunningHeadway, headway, one_target, wait_for
from tests.support.upstream import ScriptedUpstream

_LONG = pytest.mark.long
_ID = re.compile(rb"x-request-id: (\S+)", re.IGNORECASE)


@dataclass
class _Caller:
    """What one client saw: the id of its call, and whether its stream came to its end."""

    id: str = ""
    done: bool = False


@pytest.mark.parametrize(
    ("streams", "gap", "seed"),
    [(120, 0.05, 0), *(pytest.param(1000, 0.4, seed, marks=_LONG) for seed in (1, 2, 3))],
)
def test_every_call_of_a_killed_gateway_is_in_the_ledger(
    tmp_path: Path, upstream: ScriptedUpstream, streams: int, gap: float, seed: int
) -> None:
    """Finished ones exact, open ones interrupted within their bound, by the upstream's own log."""
    chance = random.Random(seed)
    upstream.pace = Pace(token=gap)
    lanes = {"interactive": {"max_in_flight": streams}}
    with headway(tmp_path, one_target(upstream.url, lanes=lanes)) as running:
        callers = asyncio.run(_streams_until_killed(running, upstream, streams, gap, chance))
        running.start_again()
        logged = {seen.headers["x-request-id"]: seen for seen in upstream.calls()}
        journal = running.data_dir / "journal"
        wait_for(lambda: {r.intent.id for r in read_records(journal)} >= set(logged), 20, "all")
        records = list(read_records(journal))
    assert set(Counter(record.intent.id for record in records).values()) == {1}
    _is_right({record.intent.id: record for record in records}, logged, callers)


async def _streams_until_killed(
    running: RunningHeadway,
    upstream: ScriptedUpstream,
    streams: int,
    gap: float,
    chance: random.Random,
) -> list[_Caller]:
    """Streams of 4 to 24 tokens that begin over 10 gaps; the kill comes in the middle of them."""

    def some_ended() -> bool:
        return sum(call.completed for call in upstream.calls()) >= streams // 10

    async def killed() -> None:
        await asyncio.sleep(gap * chance.uniform(13, 18))
        await upstream.until(some_ended, 60)
        await asyncio.to_thread(running.kill)

    callers = [_Caller() for _ in range(streams)]
    calls = [
        _stream(running.root, caller, chance.uniform(0, 10) * gap, chance.randint(4, 24))
        for caller in callers
    ]
    await asyncio.gather(killed(), *calls)
    return callers


async def _stream(root: str, caller: _Caller, begin: float, tokens: int) -> None:
    """One streamed call over a plain connection, until it ends or breaks."""
    await asyncio.sleep(begin)
    host, _, port = root.removeprefix("http://").partition(":")
    body = json.dumps(chat_body("one of many", stream=True, max_tokens=tokens)).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {KEY}\r\n"
        f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    got = b""
    try:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head.encode() + body)
        while piece := await reader.read(65536):
            got += piece
        writer.close()
    except OSError:
        pass
    found = _ID.search(got)
    caller.id = found[1].decode() if found else ""
    caller.done = b"data: [DONE]" in got


def _is_right(
    records: dict[str, CallRecord], logged: dict[str, Seen], callers: list[_Caller]
) -> None:
    statuses = Counter(records[call].outcome.status for call in logged)
    assert set(statuses) == {CallStatus.OK, CallStatus.INTERRUPTED}
    assert min(statuses.values()) >= len(callers) // 50
    for caller in callers:
        if caller.done:  # who has seen the end is billed for all of it
            assert records[caller.id].outcome.status is CallStatus.OK
    for call, seen in logged.items():
        record = records[call]
        usage = record.outcome.usage
        if record.outcome.status is CallStatus.OK:
            assert seen.usage is not None
            assert usage.prompt == seen.usage["prompt_tokens"]
            assert usage.completion == seen.usage["completion_tokens"]
            assert not usage.estimated
        else:
            assert usage.estimated
            assert record.bound == seen.json["max_tokens"]
            # Head and role come before the tokens, finish and usage after them.
            sent = max(0, min(len(seen.sent) - 2, seen.json["max_tokens"]))
            assert usage.completion <= sent <= record.bound
