"""The way of a call over its targets."""

import asyncio

import pytest

from gateway.core.errors import ModelNotFound, QueueFull, UpstreamFailed, UpstreamRefused
from gateway.core.lanes import Lane
from tests.support.clock import ManualClock
from tests.support.routes import MODEL, Roads, a_target

FAILED = UpstreamFailed("x", target="a", status=500)
ONE_PLACE = {"interactive": {"max_in_flight": 1, "max_queue": 1, "max_wait": 5}}


def names(groups: object) -> list[list[str]]:
    """The targets of each group."""
    return [[route.target for route in group] for group in groups]  # type: ignore[attr-defined]


def test_weights_make_a_group() -> None:
    """Those with a weight share, where the first of them stands."""
    targets = {"a": a_target(), "b": a_target(weight=1), "c": a_target(), "d": a_target(weight=2)}
    assert names(Roads(targets).plan().groups) == [["a"], ["b", "d"], ["c"]]


def test_an_alias_goes_the_same_way() -> None:
    """Under another name the same targets, asked for the name that they know."""
    roads = Roads({"a": a_target(models={MODEL: "their-m"})}, models={MODEL: {"aliases": ["n"]}})
    ((route,),) = roads.plan("n").groups
    assert (route.target, route.served_model) == ("a", "their-m")


def test_other_models_take_over_if_the_key_may() -> None:
    """The chain goes on with the targets of the fallback models that the caller may use."""
    roads = Roads(
        {"a": a_target(), "b": a_target(models=["m2"]), "c": a_target(models=["m3"])},
        models={MODEL: {"fallback": ["m2", "m3"]}},
    )
    assert names(roads.plan().groups) == [["a"], ["b"], ["c"]]
    assert names(roads.plan(only={MODEL, "m3"}).groups) == [["a"], ["c"]]
    with pytest.raises(ModelNotFound):
        roads.plan(only={"m2"})


def test_longer_contexts_are_found_once() -> None:
    """Targets that say they hold more, then the model of the policy, if the caller may use it."""
    targets = {
        "a": a_target(context=1000),
        "b": a_target(context=8000),
        "c": a_target(models=["big"]),
    }
    roads = Roads(targets, models={MODEL: {"longer_context": "big"}})
    plan = roads.plan()
    first = plan.groups[0][0]
    assert names(plan.longer(first)) == [["b"], ["c"]]
    assert names(plan.longer(first)) == [["b"]]
    assert names(roads.plan(only={MODEL}).longer(first)) == [["b"]]


def test_a_call_may_need_something_of_its_targets() -> None:
    """What does not suit is left out, of the longer model too."""
    targets = {
        "a": a_target(),
        "b": a_target(responses=True),
        "c": a_target(models=["big"]),
    }
    plan = Roads(targets, models={MODEL: {"longer_context": "big"}}).plan()
    assert not plan.all_suit(lambda route: route.target in {"a", "b"})
    assert plan.all_suit(lambda route: route.target in {"a", "b", "c"})
    assert plan.keep_only(lambda route: route.responses)
    assert names(plan.groups) == [["b"]]
    assert names(plan.longer(plan.groups[0][0])) == []
    assert not plan.keep_only(lambda route: route.target == "x")


async def test_the_place_is_held_for_the_attempt() -> None:
    """What ``next`` took is what ``enter`` gives; unused, it goes back."""
    roads = Roads({"a": a_target()})
    plan = roads.plan()
    route = await plan.next(plan.ready(plan.groups[0], None), spill=False)
    assert route is not None
    assert route.state.running == 1
    slot = await plan.enter(route)
    assert route.state.running == 1
    slot.release()
    await plan.next([route], spill=False)
    plan.give_up_place()
    assert route.state.running == 0


async def test_whichever_place_comes_free_first() -> None:
    """A call that waits for a group gets the first place of any of its targets."""
    targets = {name: a_target(weight=1, lanes=ONE_PLACE) for name in "ab"}
    roads = Roads(targets)
    held = {}
    for _ in range(2):
        plan = roads.plan()
        route = await plan.next(plan.groups[0], spill=False)
        assert route is not None
        held[route.target] = await plan.enter(route)
    plan = roads.plan()
    waiting = asyncio.ensure_future(plan.next(plan.groups[0], spill=False))
    await asyncio.sleep(0)
    held["b"].release()
    route = await waiting
    assert route is not None
    assert route.target == "b"
    plan.give_up_place()
    held["a"].release()
    assert [state.running for state in roads.router.states.values()] == [0, 0]


async def test_a_route_that_is_alone_is_had_at_once() -> None:
    """Unless its places are taken or it may not be tried: then the long way is gone."""
    roads = Roads({"a": a_target(lanes=ONE_PLACE)})
    first, second = roads.plan(), roads.plan()
    assert first.alone() is first.groups[0][0]
    assert second.alone() is None
    first.give_up_place()
    roads.router.states["a"].probed(healthy=False)
    assert second.alone() is None
    assert Roads({"a": a_target(), "b": a_target()}).plan().alone() is None


@pytest.mark.parametrize(("spill", "passed"), [("now", True), ("full", False)])
async def test_spilling_instead_of_waiting(*, spill: str, passed: bool) -> None:
    """Where the policy says so, a target without a place is passed over at once."""
    lanes = {"interactive": {**ONE_PLACE["interactive"], "spill": spill, "max_wait": 0.01}}
    roads = Roads({"a": a_target(lanes=lanes), "b": a_target()})
    group = roads.plan().groups[0]
    first = roads.plan()
    await first.next(group, spill=True)
    if passed:
        assert await roads.plan().next(group, spill=True) is None
    else:
        with pytest.raises(QueueFull):
            await roads.plan().next(group, spill=True)


def test_small_contexts_are_left_out_after_a_failure() -> None:
    """A prompt that is clearly too long is not sent there, and that is noted, once."""
    roads = Roads({"a": a_target(), "b": a_target(context=100)})
    plan = roads.plan(members={"messages": [{"role": "user", "content": "word " * 500}]})
    assert len(plan.ready(plan.groups[1], None)) == 1
    assert plan.ready(plan.groups[1], FAILED) == []
    assert plan.ready(plan.groups[1], FAILED) == []
    assert [route.target for route in plan.skipped] == ["b"]


async def test_all_attempts_share_the_total_limit() -> None:
    """What earlier ones took is gone; when all of it is, nothing more is tried."""
    clock = ManualClock()
    roads = Roads({"a": a_target(timeouts={"total": 10})}, clock)
    plan = roads.plan()
    (route,) = plan.groups[0]
    clock.advance(100)
    assert plan.timeouts(route).total == 10
    clock.advance(4)
    assert plan.timeouts(route).total == 6
    clock.advance(7)
    assert plan.ready([route], FAILED) == []


def test_nothing_open_says_when() -> None:
    """The answer waits for the first target that comes back."""
    clock = ManualClock()
    roads = Roads({"a": a_target(), "b": a_target()}, clock)
    plan = roads.plan()
    for name, seconds in (("a", 8), ("b", 5)):
        roads.router.states[name].credentials.park(0, seconds, clock.monotonic())
    assert plan.ready(plan.groups[0], None) == []
    assert plan.unavailable().retry_after == 5


def test_an_open_breaker_is_not_ready() -> None:
    """A target that is left out is not a route."""
    roads = Roads({"a": a_target(breaker={"failures": 1})})
    plan = roads.plan()
    roads.router.states["a"].failed(UpstreamRefused("x", target="a"), roads.clock.monotonic())
    assert plan.ready(plan.groups[0], None) == []


async def test_a_stream_is_prefilling_until_its_content() -> None:
    """A plain call never is: its first token is not seen."""
    roads = Roads({"a": a_target()})
    for stream in (True, False):
        plan = roads.plan(stream=stream)
        route = plan.groups[0][0]
        slot = await plan.enter(route)
        assert roads.admission.prefilling("a", Lane.INTERACTIVE) == int(stream)
        plan.answered(route)
        assert roads.admission.prefilling("a", Lane.INTERACTIVE) == 0
        slot.release()
