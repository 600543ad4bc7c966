"""Which of several targets takes a call."""

import time
from collections import Counter
from zlib import crc32

import pytest

from gateway.core.targets import EngineLoad
from gateway.routing.affinity import DisplacedConversations, home_of
from gateway.routing.load_balancing import choose_home, choose_quick
from gateway.routing.route import Route
from tests.support.routes import a_route


def replicas(*weights: float) -> list[Route]:
    """One route for each weight."""
    return [
        a_route(f"up{n}", weight=weight, seed=crc32(b"up%d" % n))
        for n, weight in enumerate(weights)
    ]


def shares(routes: list[Route], calls: int = 4000) -> Counter[str]:
    """How often each is chosen while nothing changes."""
    return Counter(choose_quick(routes, 0.0, stream=True).target for _ in range(calls))


def test_idle_targets_share_by_weight() -> None:
    """Two thirds and a third at 2 to 1."""
    assert shares(replicas(2, 1))["up0"] == pytest.approx(2667, rel=0.08)


def test_the_busier_one_gets_nothing() -> None:
    """Of two, the call goes where clearly less runs."""
    routes = replicas(1, 1)
    routes[0].state.running = 5
    assert shares(routes) == {"up1": 4000}


def test_the_slower_one_gets_nothing() -> None:
    """At equal load the call goes where it waits less, until that is forgotten."""
    routes = replicas(1, 1)
    for route, seconds in zip(routes, (2.0, 0.1), strict=True):
        route.state.answered(0, seconds, 0.0, stream=True)
    assert shares(routes) == {"up1": 4000}


def test_the_worst_of_many_gets_nothing() -> None:
    """Whichever two are looked at, the busiest of all is never the better one."""
    routes = replicas(1, 1, 1, 1)
    routes[2].state.running = 50
    assert shares(routes)["up2"] == 0


def test_what_an_engine_tells_is_load() -> None:
    """Calls of other gateways and batch rows count."""
    routes = replicas(1, 1)
    routes[0].state.reported(EngineLoad(running=40))
    assert shares(routes) == {"up1": 4000}


def test_calls_spread_evenly_as_they_come() -> None:
    """With calls that stay, no target gets far ahead."""
    routes = replicas(1, 1, 1)
    for _ in range(300):
        choose_quick(routes, 0.0, stream=True).state.running += 1
    assert all(80 <= route.state.running <= 120 for route in routes)


def test_a_conversation_goes_home() -> None:
    """Whatever runs elsewhere, as long as its home is not crowded."""
    routes, away = replicas(1, 1, 1), DisplacedConversations()
    for number in range(100):
        home = home_of(number, routes)
        home.state.running = 3
        assert choose_home(number, routes, away) is home
        home.state.running = 0


def test_one_hot_key_does_not_crowd_its_home() -> None:
    """Calls of one conversation spill in its own order once home has over its share."""
    routes, away = replicas(1, 1, 1, 1), DisplacedConversations()
    for _ in range(400):
        choose_home(42, routes, away).state.running += 1
    assert max(route.state.running for route in routes) <= 1.25 * 100 + 2


def test_long_prompts_are_not_stood_behind() -> None:
    """A home that has more than its share of streams without a first token is passed over."""
    routes, away = replicas(1, 1, 1), DisplacedConversations()
    home = home_of(7, routes)
    home.state.prefilling = 1
    assert choose_home(7, routes, away) is home
    home.state.prefilling = 2
    assert choose_home(7, routes, away) is not home
    for route in routes:
        route.state.prefilling = 2
    assert choose_home(8, routes, away) is home_of(8, routes)


def test_a_conversation_stays_where_it_went() -> None:
    """After a spill its newest prefix lies at the other target, and it returns there."""
    routes, away = replicas(1, 1), DisplacedConversations()
    home = home_of(7, routes)
    home.state.running = 50
    other = choose_home(7, routes, away)
    assert other is not home
    home.state.running = 0
    assert choose_home(7, routes, away) is other
    other.state.running = 50
    assert choose_home(7, routes, away) is home


def test_weights_bound_the_load() -> None:
    """A target of twice the weight takes twice the calls before it is crowded."""
    routes, away = replicas(2, 1), DisplacedConversations()
    for number in range(3000):
        choose_home(number, routes, away).state.running += 1
    assert routes[0].state.running == pytest.approx(2 * routes[1].state.running, rel=0.3)


def test_a_choice_costs_next_to_nothing() -> None:
    """Microseconds of CPU among eight targets, both ways."""
    routes, away = replicas(*[1.0] * 8), DisplacedConversations()
    begun = time.process_time()
    for number in range(2000):
        choose_home(number, routes, away)
        choose_quick(routes, 0.0, stream=True)
    assert (time.process_time() - begun) / 4000 < 100e-6
