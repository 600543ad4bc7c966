"""Which of several equal targets takes a call. One look at each; nothing is waited for.

A conversation goes where its prefix lies unless that target has more than its share of the calls
there are, or of the streams that wait for their first token. Everything else: of two targets drawn
by weight, the one where the call waits less.
"""

import random
from collections.abc import Sequence

from gateway.routing.affinity import DisplacedConversations, home_of, in_order
from gateway.routing.route import Route

_ROOM = 1.25  # how far over its share a home may be loaded
_NEVER_MUCH = 4.0  # calls at a target of weight 1 that are no load to speak of
_FEW_PROMPTS = 2.0  # the same of streams without a first token
_CLEARLY = 0.8  # a second target must be that much better than the first


def choose_home(key: int, routes: Sequence[Route], displaced: DisplacedConversations) -> Route:
    """The target of a conversation among ``routes``, which are two or more."""
    home = home_of(key, routes)
    away = displaced.where(key)
    chosen = home if away is None else next((r for r in routes if r.target == away), home)
    load = prompts = weights = 0.0
    for route in routes:
        load += route.state.load
        prompts += route.state.prefilling
        weights += route.weight
    busy = ((load + 1) / weights, (prompts + 1) / weights)
    if _crowded(chosen, *busy):
        ranked = in_order(key, routes)
        chosen = next((route for route in ranked if not _crowded(route, *busy)), chosen)
    displaced.served(key, chosen.target, at_home=chosen is home)
    return chosen


def _crowded(route: Route, load: float, prompts: float) -> bool:
    """Whether one more call would bring ``route`` over its share of the load or of the prompts.

    Both are given for a weight of 1.
    """
    state, weight = route.state, route.weight
    return (
        state.load + 1 > max(_ROOM * load, _NEVER_MUCH) * weight
        or state.prefilling + 1 > max(_ROOM * prompts, _FEW_PROMPTS) * weight
    )


def choose_quick(routes: Sequence[Route], now: float, *, stream: bool) -> Route:
    """The better of two of ``routes``, which are two or more."""
    first = _drawn(routes, None)
    second = _drawn(routes, first)
    one = first.state.latency(now, stream=stream)
    other = second.state.latency(now, stream=stream)
    if not one or not other:
        one = other = 1.0
    cost = (first.state.load / first.weight + 1) * one
    better = (second.state.load / second.weight + 1) * other < _CLEARLY * cost
    return second if better else first


def _drawn(routes: Sequence[Route], but: Route | None) -> Route:
    """One at random, by weight."""
    total = 0.0
    for route in routes:
        if route is not but:
            total += route.weight
    left = random.random() * total  # noqa: S311 - a choice, not a secret
    chosen = routes[0] if routes[0] is not but else routes[1]
    for route in routes:
        if route is not but:
            chosen = route
            left -= route.weight
            if left < 0:
                break
    return chosen
