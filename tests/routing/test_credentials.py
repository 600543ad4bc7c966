"""Which key is used."""

import pytest

from gateway.core.errors import (
    UpstreamCredential,
    UpstreamError,
    UpstreamFailed,
    UpstreamThrottled,
)
from gateway.routing.credentials import Credentials

BAD = UpstreamCredential("x", target="t", status=401)
TOO_MANY = UpstreamThrottled("x", target="t", status=429)
TOLD = UpstreamThrottled("x", target="t", status=429, retry_after=5)


@pytest.mark.parametrize("error", [BAD, TOO_MANY, TOLD])
def test_the_next_key_takes_over(error: UpstreamError) -> None:
    """A key that is refused or throttled is parked; it comes back after its time."""
    keys = Credentials("t", 2)
    assert keys.pick(0) == 0
    assert keys.refused(0, error, 0)
    assert keys.pick(0) == 1
    assert keys.wait(0) == 0
    assert keys.pick(error.retry_after or 1) == 0


def test_no_key_left() -> None:
    """The target is closed when all are to be left alone as told; of others one is tried."""
    keys = Credentials("t", 2)
    keys.refused(0, TOLD, 0)
    assert not keys.refused(1, TOLD, 2)
    assert keys.wait(2) == 3
    keys.refused(1, BAD, 10)
    keys.refused(0, TOLD, 10)
    assert keys.wait(10) == 0
    assert keys.pick(10) == 1


def test_a_single_key_is_parked_when_told() -> None:
    """A throttle without a time is left to the retries."""
    keys = Credentials("t", 0)
    assert len(keys) == 1
    assert not keys.refused(0, TOO_MANY, 0)
    assert keys.wait(0) == 0
    keys.refused(0, TOLD, 0)
    assert keys.wait(1) == 4


def test_pauses_double_until_an_answer() -> None:
    """A key that stays bad is asked ever more seldom, at most once a minute."""
    keys, now, waits = Credentials("t", 2), 0.0, []
    for _ in range(8):
        keys.refused(0, BAD, now)
        begun = now
        while keys.pick(now) != 0:
            now += 0.5
        waits.append(now - begun)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    keys.worked(0)
    keys.refused(0, BAD, now)
    assert keys.pick(now + 1) == 0


def test_a_busy_server_parks_every_key() -> None:
    """503 with a time says something about the server, not about the key."""
    keys = Credentials("t", 2)
    busy = UpstreamThrottled("x", target="t", status=503, retry_after=3)
    assert not keys.refused(0, busy, 0)
    assert keys.wait(0) == 3


def test_a_used_up_quota_parks_the_key() -> None:
    """There is nothing to wait for soon, but the next key may have some left."""
    keys = Credentials("t", 2)
    used_up = UpstreamThrottled("x", target="t", status=429, code="insufficient_quota")
    assert keys.refused(0, used_up, 0)


def test_other_failures_are_not_the_keys() -> None:
    """A server error parks nothing."""
    keys = Credentials("t", 2)
    assert not keys.refused(0, UpstreamFailed("x", target="t", status=500), 0)
    assert keys.pick(0) == 0


def test_parking_is_told() -> None:
    """Whoever asked hears target, place and seconds."""
    keys = Credentials("t", 2)
    heard: list[tuple[str, int, float]] = []
    keys.parked = lambda *what: heard.append(what)
    keys.refused(1, TOLD, 0)
    assert heard == [("t", 1, 5)]


def test_the_operator_is_told_of_a_refused_key_once(caplog: pytest.LogCaptureFixture) -> None:
    """When it is refused first and when it is accepted again; not of a throttled one."""
    caplog.set_level("INFO")
    keys = Credentials("t", 2)
    keys.refused(0, TOO_MANY, 0)
    assert (caplog.messages, keys.trouble) == ([], None)
    for _ in range(3):
        keys.refused(1, BAD, 0)
    assert keys.trouble == "key 2 of 2: refused, status 401"
    for _ in range(3):
        keys.worked(1)
    assert caplog.messages == [
        "target t, key 2 of 2: refused, status 401",
        "target t accepts key 2 of 2 again",
    ]
    assert keys.trouble is None
