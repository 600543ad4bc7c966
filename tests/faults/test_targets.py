"""Batches over several providers: limits are kept, outages are waited for, nothing is lost."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.batch import BatchClient, chat_line, ids, usage_of
from tests.support.exchange import Exchange
from tests.support.limiter import Limiter, most_in_any, most_tokens_in_any
from tests.support.meter import delivered
from tests.support.scripts import error
from tests.support.serve import RunningHeadway, headway
from tests.support.upstream import ScriptedUpstream

_SCALED = 6.0


def _policy(*urls: str, windows: tuple[int, ...] = (64, 4), **members: Any) -> dict[str, Any]:
    targets = {
        f"target-{number}": {
            "base_url": url,
            "models": ["m"],
            "lanes": {"batch": {"max_in_flight": windows[number]}},
            **members,
        }
        for number, url in enumerate(urls)
    }
    return {"targets": targets}


def _minute(seconds: float) -> dict[str, str]:
    """A minute lasts so long; outages are waited for longer than they last here."""
    return {"HEADWAY_RATE_MINUTE_SECONDS": str(seconds), "HEADWAY_RETRY_CAP_SECONDS": "60"}


def _down(upstream: ScriptedUpstream, how: str, seconds: float) -> None:
    """Fail every call, or refuse connections, for so long from the first call on."""
    if how == "500":
        begun: list[float] = []

        def failing(seen: object) -> bool:
            begun.append(time.monotonic())
            return begun[-1] < begun[0] + seconds

        upstream.on(failing, error(500))
        return
    upstream.refuse()
    threading.Timer(seconds + 2, upstream.start).start()


def _finished(running: RunningHeadway, rows: int, ups: list[ScriptedUpstream], wait: float) -> None:
    """Every row once, nothing failed, and the meter says what was delivered and answered."""
    client = BatchClient(running)
    batch = client.ended(
        client.start(chat_line(str(n), f"row number {n}") for n in range(rows))["id"], wait
    )
    assert batch["request_counts"] == {"completed": rows, "failed": 0, "total": rows}
    output = client.output(batch)
    assert ids(output) == sorted(map(str, range(rows)))
    figures = [up.usage() for up in ups]
    assert usage_of(output) == (sum(p for p, _ in figures), sum(c for _, c in figures))
    assert delivered(running) == usage_of(output)


_OUTAGES = [pytest.param("500", 2000, marks=pytest.mark.long), ("refused", 800)]


@pytest.fixture
def ups(upstream: ScriptedUpstream, upstream2: ScriptedUpstream) -> list[ScriptedUpstream]:
    """The limited one and the failing one, whose places and pace make 160 rows a second."""
    upstream2.pace.first = 0.025
    return [upstream, upstream2]


@pytest.mark.parametrize(("how", "rows"), _OUTAGES)
def test_limit_told_and_outage(
    tmp_path: Path, ups: list[ScriptedUpstream], how: str, rows: int
) -> None:
    """Scaled to a tenth: 60 requests a minute told in headers, 30 s of failures."""
    limiter = Limiter(60, _SCALED)
    ups[0].on("m", limiter)
    _down(ups[1], how, _SCALED / 2)
    with headway(tmp_path, _policy(*(up.url for up in ups)), _minute(_SCALED)) as running:
        _finished(running, rows, ups, 120)
    assert most_in_any(_SCALED, ups[0].calls()) <= 60
    assert limiter.refused == 0
    assert len(ups[0].calls()) > 50


@pytest.mark.parametrize("retry", [pytest.param(True, marks=pytest.mark.long), False])
def test_limit_found_out(tmp_path: Path, ups: list[ScriptedUpstream], retry: bool) -> None:
    """The same with a limit that only 429s tell of, with and without Retry-After."""
    limiter = Limiter(60, _SCALED, tell=False, retry=retry)
    ups[0].on("m", limiter)
    _down(ups[1], "500", _SCALED / 2)
    with headway(tmp_path, _policy(*(up.url for up in ups)), _minute(_SCALED)) as running:
        _finished(running, 800, ups, 120)
    assert most_in_any(_SCALED, [call for call in ups[0].calls() if call.status == 200]) <= 60
    # finding out costs about what is in flight once, however long the batch is
    assert 0 < limiter.refused <= 80


def test_limit_of_the_policy(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """A limit that is given is kept from the first row on, without a word from the provider."""
    limiter = Limiter(60, _SCALED, tell=False)
    upstream.on("m", limiter)
    policy = _policy(upstream.url, limits={"requests_per_minute": 60})
    with headway(tmp_path, policy, _minute(_SCALED)) as running:
        _finished(running, 100, [upstream], 60)
    assert limiter.refused == 0
    assert most_in_any(_SCALED, upstream.calls()) <= 60


def test_tokens_per_minute(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """A token limit told in headers paces rows whose size is estimated and then corrected."""
    limiter = Limiter(10_000, _SCALED, tokens=350)
    upstream.on("m", limiter)
    with headway(tmp_path, _policy(upstream.url), _minute(_SCALED)) as running:
        _finished(running, 120, [upstream], 60)
    answered = [call for call in upstream.calls() if call.status == 200]
    assert most_tokens_in_any(_SCALED, answered) <= 350
    assert limiter.refused <= 5


@pytest.mark.long
def test_both_targets_down_then_back(tmp_path: Path, ups: list[ScriptedUpstream]) -> None:
    """For 3 s nobody answers; no row loses its tries."""
    for up in ups:
        _down(up, "500", 3.0)
    env = {**_minute(_SCALED), "HEADWAY_ROW_ATTEMPTS": "2"}
    with headway(tmp_path, _policy(*(up.url for up in ups)), env) as running:
        _finished(running, 300, ups, 60)
    assert sum(call.status == 500 for up in ups for call in up.calls()) < 200


def test_keys_take_turns(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """A revoked key is left alone, a throttled one rests, and the third carries on."""
    limiter = Limiter(20, _SCALED, tell=False)

    def bearer(exchange: Exchange) -> str:
        return exchange.seen.headers.get("authorization", "").removeprefix("Bearer ")

    async def by_key(exchange: Exchange) -> None:
        if bearer(exchange) == "k-revoked":
            await error(401)(exchange)
        elif bearer(exchange) == "k-small":
            await limiter(exchange)
        else:
            await Limiter(10_000, 1.0, tell=False)(exchange)

    upstream.on("m", by_key)
    policy = _policy(upstream.url, api_keys=["k-revoked", "k-small", "k-large"])
    with headway(tmp_path, policy, _minute(_SCALED)) as running:
        _finished(running, 400, [upstream], 60)
        assert "k-" not in running.tail()
    refused = [call for call in upstream.calls() if call.status == 401]
    assert 1 <= len(refused) <= 40


@pytest.mark.long
def test_at_full_scale(tmp_path: Path, ups: list[ScriptedUpstream]) -> None:
    """60 requests a minute, 30 s of failures, and minutes as long as they are."""
    limiter = Limiter(60, 60.0)
    ups[0].on("m", limiter)
    ups[1].pace.first = 0.25
    _down(ups[1], "500", 30.0)
    with headway(tmp_path, _policy(*(up.url for up in ups))) as running:
        _finished(running, 2000, ups, 400)
    assert most_in_any(60.0, ups[0].calls()) <= 60
    assert limiter.refused == 0
