"""From one target to the next."""

import asyncio
import contextlib

import pytest

from gateway.core.clock import SystemClock
from gateway.core.errors import (
    HeadwayError,
    OutcomeUnknown,
    QueueFull,
    StreamInterrupted,
    Unavailable,
    UpstreamCredential,
    UpstreamFailed,
    UpstreamRejected,
    UpstreamThrottled,
)
from gateway.core.lanes import Lane
from gateway.routing.call_plan import CallPlan
from gateway.routing.fallback import Attempt, attempt_all
from gateway.routing.route import Route
from tests.support.clock import ManualClock
from tests.support.routes import Roads, a_target


def plan(*, resend: bool = False) -> CallPlan:
    """Two targets for one model."""
    target = a_target(retry={"attempts": 1, "resend_unknown": resend})
    return Roads({"a": target, "b": target}).plan()


async def _asked(error: HeadwayError, *, resend: bool = False) -> list[tuple[str, bool]]:
    asked: list[tuple[str, bool]] = []

    async def attempt(route: Route, last: bool) -> None:
        asked.append((route.target, last))
        if route.target == "a":
            raise error

    with contextlib.suppress(type(error)):
        await attempt_all(plan(resend=resend), attempt, SystemClock())
    return asked


@pytest.mark.parametrize(
    "error",
    [
        QueueFull("x", retry_after=1),
        UpstreamCredential("x", target="a", status=401),
        StreamInterrupted("x", target="a"),
    ],
)
async def test_goes_on_to_the_next(error: HeadwayError) -> None:
    """A target's own trouble leads to the next one, which is told to be the last."""
    assert await _asked(error) == [("a", False), ("b", True)]


async def test_request_faults_end_the_chain() -> None:
    """What the request got wrong is the same everywhere."""
    assert await _asked(UpstreamRejected("x", target="a", status=400)) == [("a", False)]


async def test_unknown_outcome_only_where_allowed() -> None:
    """Sending again what may have been done is the policy's decision."""
    error = OutcomeUnknown("x", target="a")
    assert len(await _asked(error)) == 1
    assert len(await _asked(error, resend=True)) == 2


def ok_but(*failing: tuple[str, HeadwayError]) -> tuple[list[str], Attempt[str]]:
    """Which targets were asked, and an attempt at which the given ones fail."""
    asked: list[str] = []
    errors = dict(failing)

    async def attempt(route: Route, last: bool) -> str:
        del last
        asked.append(route.target)
        if route.target in errors:
            raise errors[route.target]
        return route.target

    return asked, attempt


QUICK = {"attempts": 3, "base": 0.001, "cap": 0.001}
FAILED = UpstreamFailed("x", target="a", status=500)
TOO_LONG = UpstreamRejected("x", target="a", status=400, code="context_length_exceeded")


async def test_of_equal_targets_the_next_is_asked_at_once() -> None:
    """One call at each, and retries at the last alone."""
    targets = {name: a_target(weight=1, retry=QUICK) for name in "abc"}
    asked, attempt = ok_but(("a", FAILED), ("b", FAILED), ("c", FAILED))
    with pytest.raises(UpstreamFailed):
        await attempt_all(Roads(targets).plan(), attempt, SystemClock())
    assert sorted(asked[:3]) == ["a", "b", "c"]
    assert asked[2:] == [asked[2]] * 3


async def test_a_target_that_is_left_out_is_not_asked() -> None:
    """The breaker closes it for all calls; the next target is asked first."""
    roads = Roads({"a": a_target(breaker={"failures": 2}, retry=QUICK), "b": a_target()})
    asked, attempt = ok_but(("a", FAILED))
    for _ in range(3):
        assert await attempt_all(roads.plan(), attempt, SystemClock()) == "b"
    assert asked == ["a", "a", "b", "b", "b"]


async def test_a_told_pause_is_not_waited_for_when_another_can_serve() -> None:
    """The target is left alone as long as it said, and the next one serves at once."""
    told = UpstreamThrottled("x", target="a", status=429, retry_after=30)
    roads = Roads({"a": a_target(), "b": a_target()})
    asked, attempt = ok_but(("a", told))
    for _ in range(2):
        assert await attempt_all(roads.plan(), attempt, SystemClock()) == "b"
    assert asked == ["a", "b", "b"]


async def test_the_next_key_at_once() -> None:
    """A key that is refused does not cost a pause, nor the target its turn."""
    roads = Roads({"a": a_target(api_keys=["k1", "k2", "k3"])})
    plan, used = roads.plan(), []

    async def attempt(route: Route, last: bool) -> str:
        del last
        (await plan.enter(route)).release()
        used.append(plan.key)
        if plan.key < 2:
            raise UpstreamCredential("x", target="a", status=401)
        return "ok"

    assert await attempt_all(plan, attempt, SystemClock()) == "ok"
    assert used == [0, 1, 2]
    assert roads.router.states["a"].credentials.pick(roads.clock.monotonic()) == 2


async def test_the_last_key_that_is_refused_is_the_answer() -> None:
    """When no key is left, the refusal is raised; the target is left out as a failing one."""
    roads = Roads({"a": a_target(api_keys=["k1", "k2"], breaker={"failures": 2})})
    plan = roads.plan()

    async def attempt(route: Route, last: bool) -> str:
        del last
        (await plan.enter(route)).release()
        raise UpstreamCredential("x", target="a", status=401)

    for _ in range(2):
        with pytest.raises(UpstreamCredential):
            await attempt_all(plan, attempt, SystemClock())
    with pytest.raises(Unavailable):
        await attempt_all(roads.plan(), attempt, SystemClock())


async def test_retries_end_with_the_budget() -> None:
    """Ten are free; then a share of the calls may be retried and no more."""
    roads = Roads({"a": a_target(retry={**QUICK, "budget": 0.5})})
    asked, attempt = ok_but(("a", UpstreamThrottled("x", target="a", status=429)))
    for _ in range(40):
        with pytest.raises(UpstreamThrottled):
            await attempt_all(roads.plan(), attempt, SystemClock())
    assert 40 < len(asked) <= 40 + 10 + 20


async def test_too_long_goes_where_it_fits() -> None:
    """To the model named for it, not to the next of the same size."""
    targets = {"a": a_target(), "b": a_target(), "big": a_target(models=["long"])}
    roads = Roads(targets, models={"m": {"longer_context": "long"}})
    asked, attempt = ok_but(("a", TOO_LONG))
    assert await attempt_all(roads.plan(), attempt, SystemClock()) == "big"
    assert asked == ["a", "big"]
    asked, attempt = ok_but(("a", TOO_LONG))
    with pytest.raises(UpstreamRejected):
        await attempt_all(roads.plan(only={"m"}), attempt, SystemClock())
    assert asked == ["a"]


async def test_too_long_for_the_longest_ends() -> None:
    """Nobody is asked twice."""
    roads = Roads(
        {"a": a_target(context=10), "big": a_target(models=["long"], context=20)},
        models={"m": {"longer_context": "long"}},
    )
    asked, attempt = ok_but(("a", TOO_LONG), ("big", TOO_LONG))
    with pytest.raises(UpstreamRejected):
        await attempt_all(roads.plan(), attempt, SystemClock())
    assert asked == ["a", "big"]


async def test_a_full_queue_spills_unless_forbidden() -> None:
    """``never`` answers 429; otherwise the next target takes the call."""
    for spill, served in (("never", None), ("full", "b"), ("now", "b")):
        full = {"max_in_flight": 1, "max_queue": 0, "spill": spill}
        roads = Roads({"a": a_target(lanes={"interactive": full}), "b": a_target()})
        held = await roads.admission.enter("a", Lane.INTERACTIVE)
        _, attempt = ok_but()
        if served is None:
            with pytest.raises(QueueFull):
                await attempt_all(roads.plan(), attempt, SystemClock())
        else:
            assert await attempt_all(roads.plan(), attempt, SystemClock()) == served
        held.release()
        assert [state.running for state in roads.router.states.values()] == [0, 0]


async def test_nothing_is_left_behind_by_a_cancelled_call() -> None:
    """The place held for an attempt comes back however it ends."""
    roads = Roads({"a": a_target()})

    async def attempt(route: Route, last: bool) -> str:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await attempt_all(roads.plan(), attempt, SystemClock())
    assert roads.router.states["a"].running == 0


async def test_a_target_that_fails_while_calls_wait_for_it() -> None:
    """Those in line do not go there one after the other to fail, too."""
    one = {"interactive": {"max_in_flight": 1}}
    roads = Roads({"a": a_target(lanes=one, breaker={"failures": 1}), "b": a_target()})
    held = await roads.admission.enter("a", Lane.INTERACTIVE)
    asked, attempt = ok_but(("a", FAILED))
    calls = [
        asyncio.create_task(attempt_all(roads.plan(), attempt, SystemClock())) for _ in range(5)
    ]
    await asyncio.sleep(0)
    held.release()
    assert await asyncio.gather(*calls) == ["b"] * 5
    assert asked.count("a") == 1
    assert roads.router.states["a"].running == 0


async def test_those_in_line_wait_for_a_target_that_nobody_replaces() -> None:
    """What waited for its place waits on until the target is asked again; a newcomer does not."""
    clock = ManualClock()
    one = {"interactive": {"max_in_flight": 1, "max_wait": 60}}
    roads = Roads({"a": a_target(lanes=one, breaker={"failures": 1, "pause": 2})}, clock)
    _, attempt = ok_but()
    held = await roads.admission.enter("a", Lane.INTERACTIVE)
    calls = [asyncio.create_task(attempt_all(roads.plan(), attempt, clock)) for _ in range(5)]
    await asyncio.sleep(0)
    began = clock.monotonic()
    roads.router.states["a"].breaker.failed(began)
    held.release()
    with pytest.raises(Unavailable):
        await attempt_all(roads.plan(), attempt, clock)
    assert await asyncio.gather(*calls) == ["a"] * 5
    assert clock.monotonic() - began >= 2


async def test_those_in_line_wait_no_longer_than_they_may() -> None:
    """A target that stays away is told in the end."""
    clock = ManualClock()
    one = {"interactive": {"max_in_flight": 1, "max_wait": 5}}
    roads = Roads({"a": a_target(lanes=one)}, clock)
    held = await roads.admission.enter("a", Lane.INTERACTIVE)
    _, attempt = ok_but()
    call = asyncio.create_task(attempt_all(roads.plan(), attempt, clock))
    await asyncio.sleep(0)
    roads.router.states["a"].probed(healthy=False)
    held.release()
    began = clock.monotonic()
    with pytest.raises(Unavailable):
        await call
    assert 5 <= clock.monotonic() - began < 6


async def test_calls_wait_a_little_for_a_target_that_cools() -> None:
    """An interactive one for a moment, an elastic one as long as it may; not for broken ones."""
    clock = ManualClock()
    roads = Roads({"a": a_target(lanes={"elastic": {"max_wait": 60}})}, clock)
    state = roads.router.states["a"]
    _, attempt = ok_but()
    state.credentials.park(0, 0.5, clock.monotonic())
    assert await attempt_all(roads.plan(), attempt, clock) == "a"
    state.credentials.park(0, 30, clock.monotonic())
    with pytest.raises(Unavailable):
        await attempt_all(roads.plan(), attempt, clock)
    assert await attempt_all(roads.plan(lane=Lane.ELASTIC), attempt, clock) == "a"
    state.probed(healthy=False)
    with pytest.raises(Unavailable):
        await attempt_all(roads.plan(lane=Lane.ELASTIC), attempt, clock)
