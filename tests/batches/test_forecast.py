"""Forecasts follow from pace and work ahead, and come true."""

import logging

import pytest

from gateway.batches.forecast import Forecaster, Pace, forecasts, is_late, warning
from gateway.core.clock import SystemClock
from gateway.store.client import StoreClient
from gateway.store.control import Scope
from gateway.store.outlook import Forecast, OpenSegment, Outlook
from gateway.store.queue import QueueClient
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane
from tests.support.clock import ManualClock
from tests.support.segments import SHARD, outcome, segment

NOW = 1_000_000_000_000


def _open(
    name: str, rows: int, *, tenant: str = "t", weight: float = 1.0, deadline: int = 10**6
) -> OpenSegment:
    """``rows`` of 100 tokens; ``deadline`` in seconds from now."""
    at = NOW + 1000 * deadline
    return OpenSegment(name, tenant, weight, rows, 100 * rows, at, at, paused=False)


def _pace(rate: int, seconds: int = 30) -> Pace:
    """A shard that does ``rate`` rows of 100 tokens in a second."""
    pace, left, done = Pace(), 10**6, 0
    for second in range(0, seconds, 2):
        pace.note(second, Outlook({"h": 1000 + done}, (_open("x", left - done),)))
        done += 2 * rate
    return pace


def _etas(segments: list[OpenSegment], pace: Pace) -> dict[str, float]:
    made = forecasts(segments, pace, NOW)
    return {name: round(((f.eta_ms or 0) - NOW) / 1000, 1) for name, f in made.items()}


def test_the_pace_is_that_of_the_last_minute() -> None:
    """Unknown at first, then rows and tokens per second; a new pace replaces the old one."""
    assert Pace().rows is None
    pace = _pace(10)
    assert pace.rows == pytest.approx(10)
    assert pace.tokens == pytest.approx(1000)
    done = 0
    for second in range(30, 130, 2):
        done += 2 * 20
        pace.note(second, Outlook({"h": 10_000 + done}, (_open("x", 5 * 10**5 - done),)))
    assert pace.rows == pytest.approx(20)


def test_a_new_hour_and_an_idle_shard_are_no_work() -> None:
    """The count of a new hour starts at nothing; without work there is no pace."""
    pace = Pace()
    for second, hours in ((0, {"a": 50}), (4, {"a": 60}), (8, {"a": 64, "b": 16})):
        pace.note(second, Outlook(hours, (_open("x", 100),)))
    assert pace.rows == pytest.approx(30 / 8)
    pace.note(10, Outlook({}, ()))
    assert pace.rows is None
    pace.note(12, Outlook({"b": 5000}, (_open("x", 100),)))
    pace.note(20, Outlook({"b": 5008}, (_open("x", 100),)))
    assert pace.rows == pytest.approx(1)


def test_a_minute_without_a_row_is_a_stall() -> None:
    """Deadlines that a row in each such time would miss are at risk, the others not yet."""
    pace = Pace()
    for second in range(0, 124, 2):
        pace.note(second, Outlook({"h": 7}, (_open("x", 100),)))
        assert pace.idle_seconds == (second if second >= 56 else 0)
    segments = [_open("soon", 5, deadline=600), _open("new", 1, deadline=86_400)]
    made = forecasts(segments, pace, NOW)
    assert made == {"soon": Forecast(None, 0.0, stalled=True), "new": Forecast(None, 0.0)}
    assert is_late(made["soon"], NOW + 600_000)
    assert "last minute" in (warning(made["soon"], NOW) or "")
    assert warning(made["new"], NOW + 86_400_000) is None


def test_one_tenant_is_served_by_deadline() -> None:
    """Each segment waits for those before it."""
    segments = [_open("late", 100, deadline=9000), _open("soon", 50, deadline=5000)]
    assert _etas(segments, _pace(10)) == {"soon": 5.0, "late": 15.0}


def test_tenants_share_by_weight() -> None:
    """Equal work: three quarters go to the heavier one, all to who is left."""
    segments = [_open("a", 300, tenant="a", weight=3), _open("b", 300, tenant="b")]
    assert _etas(segments, _pace(10)) == {"a": 40.0, "b": 60.0}


def test_work_that_is_told_in_sum_competes() -> None:
    """It gets its tenant's share, and no forecast of its own."""
    segments = [_open("a", 100, tenant="a"), _open("", 10_000, tenant="b", deadline=10**9)]
    assert _etas(segments, _pace(10)) == {"a": 20.0}


def test_what_would_be_late_goes_first() -> None:
    """With what the queue does about late work a small urgent batch is in time."""
    segments = [
        _open("big", 10_000, tenant="a", weight=9, deadline=9000),
        _open("urgent", 30, tenant="b", deadline=10),
    ]
    assert _etas(segments, _pace(10))["urgent"] == 4.0


def test_lateness_in_words() -> None:
    """Pace and seconds; nothing when it is in time or unknown."""
    late = Forecast(NOW + 90_000, 2.5)
    assert is_late(late, NOW)
    assert warning(late, NOW) == "At 2.5 rows per second the deadline will be missed by 90 s."
    for fine in (Forecast(NOW, 2.5), Forecast(None, 0.0)):
        assert not is_late(fine, NOW)
        assert warning(fine, NOW) is None


async def test_a_forecast_of_the_queue(
    plane: BatchPlane, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measured on the shard, told with the batch, logged once when the deadline is missed."""
    monkeypatch.setattr("gateway.batches.forecast.hour_of", lambda now: "2026010100")
    caplog.set_level(logging.WARNING)
    clock = _Hasty()
    late: list[tuple[str, bool]] = []
    forecaster = Forecaster(plane.queue, clock, lambda *told: late.append(told))
    lines = [chat_line(str(n), "x") for n in range(40)]
    easy = await plane.start(*lines)
    tight = await plane.start(*lines, completion_window="60s")
    for _ in range(8):
        await forecaster.step()
        await plane.run(1)
        clock.ahead += 2
    await forecaster.step()
    assert (late[0], late[-1]) == ((SHARD, False), (SHARD, True))
    found = (await plane.get(tight))["headway"]
    assert found["rows_per_second"] == pytest.approx(0.5, rel=0.3)
    assert found["deadline_at_risk"]
    assert "rows per second" in found["warning"]
    found = (await plane.get(easy))["headway"]
    assert not found["deadline_at_risk"]
    assert found["warning"] is None
    now = SystemClock().now()
    assert found["eta"] - now == pytest.approx(72 / 0.5 + clock.ahead, rel=0.4)
    assert [r.message for r in caplog.records if "deadline" in r.message] != []
    assert len([r for r in caplog.records if tight in r.message]) == 1
    assert not [r for r in caplog.records if easy in r.message]
    await plane.store.execute_command("DEL", f"gw:{{{SHARD}}}:fc")
    assert (await plane.get(easy))["headway"] == {
        "eta": None,
        "rows_per_second": None,
        "deadline_at_risk": False,
        "warning": None,
        "paused": False,
    }


class _Hasty(SystemClock):
    """The machine's clock, ahead of it."""

    ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


async def test_paused_work_has_no_end(plane: BatchPlane) -> None:
    """No time is told for it, and it does not hold up the others."""
    queue, clock = QueueClient(plane.store), ManualClock(NOW / 1000)
    await queue.enqueue(SHARD, segment("a.0", 100, tenant="a"))
    await queue.enqueue(SHARD, segment("b.0", 100, tenant="b"))
    await plane.store.execute_command("HSET", f"gw:{{{SHARD}}}:tn:a", "paused", 1)
    forecaster = Forecaster(queue, clock)
    for row in range(6):
        await forecaster.step()
        hour = "2001090901"
        await queue.commit(SHARD, "", "b.0", [outcome(row)], hour)
        clock.advance(2)
    await forecaster.step()
    paused, running = await queue.forecast(SHARD, "a.0"), await queue.forecast(SHARD, "b.0")
    assert paused is not None
    assert running is not None
    assert (paused.eta_ms, paused.rate, paused.paused) == (None, 0.0, True)
    assert not running.paused
    assert running.eta_ms is not None
    assert (running.eta_ms / 1000 - clock.now()) == pytest.approx(94 / 0.5, rel=0.1)


async def test_a_paused_batch_says_so(plane: BatchPlane) -> None:
    """It has no pace while it is paused, and goes on when it is not."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(4)))
    forecaster, scope = Forecaster(plane.queue, SystemClock()), Scope("segment", f"{batch_id}.0")
    for change in (plane.queue.pause, plane.queue.resume):
        await change(SHARD, scope)
        await forecaster.step()
        found = (await plane.get(batch_id))["headway"]
        assert found["paused"] is (change == plane.queue.pause)
        assert (found["eta"], found["rows_per_second"]) == (None, None)


def test_a_cost_cap_that_is_used_up_is_part_of_the_warning() -> None:
    """Where a deadline is at risk; otherwise nobody needs to know."""
    late = Forecast(NOW + 20_000, 2.0, capped=True)
    said = warning(late, NOW + 10_000)
    assert said is not None
    assert said.endswith("missed by 10 s. The cost cap for late work is used up.")
    assert warning(late, NOW + 30_000) is None
    stalled = warning(Forecast(None, 0.0, stalled=True, capped=True), NOW)
    assert stalled is not None
    assert stalled.endswith("The cost cap for late work is used up.")


async def test_the_forecaster_notes_which_shards_are_capped(store: StoreClient) -> None:
    """Whoever reads the forecast of a segment is told."""
    queue = QueueClient(store)
    await queue.enqueue(SHARD, segment("a.0", 100))
    await Forecaster(queue, SystemClock(), capped=lambda shard: shard == SHARD).step()
    found = await queue.forecast(SHARD, "a.0")
    assert found is not None
    assert found.capped
