"""Where a conversation belongs."""

from collections import Counter
from typing import Any
from zlib import crc32

import pytest

from gateway.routing.affinity import DisplacedConversations, affinity_key, home_of, in_order
from gateway.routing.route import Route
from tests.support.routes import a_route


def replicas(*weights: float) -> list[Route]:
    """One route for each weight."""
    return [
        a_route(f"up{n}", weight=weight, seed=crc32(b"up%d" % n))
        for n, weight in enumerate(weights)
    ]


def chat(*texts: Any) -> dict[str, Any]:
    """A conversation: a system prompt, then turns of user and assistant."""
    roles = ["system", *(["user", "assistant"] * len(texts))]
    return {
        "messages": [{"role": r, "content": t} for r, t in zip(roles, texts, strict=False)],
    }


def key(members: dict[str, Any], tenant: str = "t", **headers: bytes) -> int | None:
    """The key of a call."""
    sent = {name.replace("_", "-").encode(): value for name, value in headers.items()}
    return affinity_key(tenant, members, sent)


def test_a_conversation_keeps_its_key() -> None:
    """Turns are added at the end; the beginning stays."""
    first = key(chat("be kind", "hello"))
    assert key(chat("be kind", "hello", "hi there", "how are you")) == first
    assert key(chat("be kind", "good day")) != first
    parts = [{"type": "text", "text": "hello"}]
    assert key(chat("be kind", parts)) == first


def test_a_name_wins_over_the_text() -> None:
    """The session header, prompt_cache_key, user: in this order, whatever the text is."""
    named = {**chat("a", "b"), "prompt_cache_key": "k", "user": "u"}
    other = {**chat("c", "d"), "prompt_cache_key": "k", "user": "v"}
    assert key(named) == key(other)
    assert key(named, x_headway_session=b"s") == key(chat("e"), x_headway_session=b"s")
    assert key({**chat("a"), "user": "u"}) == key({**chat("z"), "user": "u"})


def test_tenants_share_no_conversation() -> None:
    """The same words of two tenants are two conversations."""
    assert key(chat("a", "b"), "t1") != key(chat("a", "b"), "t2")


@pytest.mark.parametrize("members", [{}, {"input": ["a"]}, {"prompt": [1, 2]}, {"messages": []}])
def test_what_has_no_beginning_has_no_key(members: dict[str, Any]) -> None:
    """Such calls go where the least is going on."""
    assert key(members) is None


@pytest.mark.parametrize("content", [None, 7, [None, {"text": 3}], "\ud800"])
def test_odd_content_is_no_fault(content: Any) -> None:
    """Whether a message is right is for the target to say."""
    assert isinstance(key(chat(content, content)), int)


def test_a_completion_has_its_prompt() -> None:
    """The first thousand characters."""
    assert key({"prompt": "a" * 2000}) == key({"prompt": "a" * 3000})


def test_homes_follow_the_weights() -> None:
    """Each place is home to its share of the keys."""
    places = replicas(1, 1, 2)
    homes = Counter(home_of(crc32(b"%d" % n), places).target for n in range(8000))
    assert homes["up2"] == pytest.approx(4000, rel=0.1)
    assert homes["up0"] == pytest.approx(2000, rel=0.15)


def test_only_the_keys_of_a_lost_place_move() -> None:
    """The others keep their home, and the order without a place is the order less that place."""
    places = replicas(1, 1, 1, 1)
    for number in range(500):
        ranked = in_order(number, places)
        assert ranked[0] is home_of(number, places)
        left = [place for place in places if place is not ranked[0]]
        assert in_order(number, left) == ranked[1:]


def test_wanderers_are_remembered_and_forgotten() -> None:
    """Who is away is found there; who is home again, or was away long ago, is not kept."""
    away = DisplacedConversations(most=2)
    for number in (1, 2, 3):
        away.served(number, f"up{number}", at_home=False)
    assert [away.where(number) for number in (1, 2, 3)] == [None, "up2", "up3"]
    away.served(2, "up0", at_home=True)
    assert away.where(2) is None
