"""Which of several equal targets takes a call. One look at each; nothing is waited for.

A conversation goes where its prefix lies unless that target has more than its share of the calls
there are. Everything else: of two targets drawn by weight, the one where the call waits less.
"""

import random
from collections.abc import Sequence

from gateway.routing.affinity import Wanderers, home_of, in_order
from gateway.routing.plan import Route

_ROOM = 1.25  # how far over its share a home may be loaded
_NEVER_MUCH = 4.0  # calls at a target of weight 1 that are no load to speak of
_CLEARLY = 0.8  # a second target must be that much better than the first


def choose_home(key: int, routes: Sequence[Route], wanderers: Wanderers) -> Route:
    """The target of a conversation among ``routes``, which are two or more."""
    home = home_of(key, routes)
    away = wanderers.where(key)
    chosen = home if away is None else next((r for r in routes if r.target == away), home)
    total, weights = 0.0, 0.0
    for route in routes:
        total += route.state.load
        weights += route.weight
    if _crowded(chosen, total, weights):
        ranked = in_order(key, routes)
        chosen = next((r for r in ranked if not _crowded(r, total, weights)), chosen)
    wanderers.served(key, chosen.target, at_home=chosen is home)
    return chosen


def _crowded(route: Route, total: float, weights: float) -> bool:
    share = _ROOM * (total + 1) * route.weight / weights
    return route.state.load + 1 > max(share, _NEVER_MUCH * route.weight)


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
