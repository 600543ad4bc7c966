"""What a process knows about a target."""

import pytest

from gateway.core.errors import (
    HeadwayError,
    OutcomeUnknown,
    StreamInterrupted,
    UpstreamCredential,
    UpstreamFailed,
    UpstreamRefused,
    UpstreamRejected,
    UpstreamThrottled,
    UpstreamTimeout,
)
from gateway.core.targets import EngineLoad
from gateway.policy.target import TargetPolicy
from gateway.routing.state import TargetState
from tests.support.routes import a_target


def a_state() -> TargetState:
    """A target that is left out after a single failure."""
    policy = a_target(breaker={"failures": 1, "pause": 9}, weight=2)
    return TargetState("t", TargetPolicy.model_validate(policy))


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (OutcomeUnknown("x", target="t"), True),
        (StreamInterrupted("x", target="t"), True),
        (UpstreamFailed("x", target="t", status=500), True),
        (UpstreamRefused("x", target="t"), True),
        (UpstreamTimeout("x", target="t"), True),
        (UpstreamThrottled("x", target="t", status=503), True),
        (UpstreamThrottled("x", target="t", status=503, retry_after=1), False),
        (UpstreamThrottled("x", target="t", status=429), False),
        (UpstreamCredential("x", target="t", status=401), True),
        (UpstreamRejected("x", target="t", status=400), False),
    ],
)
def test_whose_fault_it_was(error: HeadwayError, *, counts: bool) -> None:
    """What the request or the rate got wrong does not make a target a broken one."""
    state = a_state()
    state.failed(error, 0)
    assert (state.wait(0) > 0) is counts


def test_an_answer_to_a_bad_request_is_an_answer() -> None:
    """A target that can tell what is wrong with a request works."""
    state = a_state()
    state.failed(UpstreamFailed("x", target="t", status=500), 0)
    state.failed(UpstreamRejected("x", target="t", status=400), 0)
    assert state.wait(0) == 0


def test_health_takes_out_and_puts_back() -> None:
    """A target that is down gets nothing; once it is up, a broken one is tried at once."""
    state = a_state()
    state.failed(UpstreamRefused("x", target="t"), 0)
    state.probed(healthy=False)
    assert state.wait(100) > 0
    state.probed(healthy=True)
    assert state.wait(0) == 0


def test_the_engines_own_word_counts() -> None:
    """Calls of others are seen, those that wait count twice, a full KV memory doubles all."""
    state = a_state()
    state.running = 3
    assert state.load == 3
    state.reported(EngineLoad(running=5, waiting=2))
    assert state.load == 9
    state.running = 1
    assert state.load == 7
    state.reported(EngineLoad(running=1, kv_use=0.95))
    assert state.load == 3
    state.reported(None)
    assert state.load == 1


def test_streams_and_plain_answers_are_timed_apart() -> None:
    """The first content of a stream and a whole answer are different waits."""
    state = a_state()
    state.answered(0, 0.2, 0, stream=True)
    state.answered(0, 3.0, 0, stream=False)
    assert state.latency(0, stream=True) == 0.2
    assert state.latency(0, stream=False) == 3.0


def test_a_beginning_is_no_end() -> None:
    """Streams that begin and break off are failures in a row; a broken target is back on trust."""
    state = TargetState("t", TargetPolicy.model_validate(a_target(breaker={"failures": 2})))
    for _ in range(2):
        state.answered(0, 0.1, 0, stream=True)
        state.failed(StreamInterrupted("x", target="t"), 0)
    assert state.wait(0) > 0
    state.answered(0, 0.1, 5, stream=True)
    assert state.wait(5) == 0
    state.failed(StreamInterrupted("x", target="t"), 5)
    state.worked()
    state.failed(StreamInterrupted("x", target="t"), 5)
    assert state.wait(5) == 0


def test_an_engine_that_speaks_again_is_tried() -> None:
    """Its word after a silence ends the pause, however long; as long as it speaks, none is cut."""
    state = a_state()
    state.reported(EngineLoad())
    state.failed(UpstreamRefused("x", target="t"), 0)
    state.reported(EngineLoad())
    assert state.wait(0) > 0
    state.reported(None)
    assert state.wait(0) > 0
    state.reported(EngineLoad())
    assert state.wait(0) == 0


def test_the_operator_is_told_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    """Once when it is left out, with the last failure, and once when it works again."""
    caplog.set_level("INFO")
    state = a_state()
    for _ in range(3):
        state.failed(UpstreamFailed("secret", target="t", status=500), 0)
    assert state.trouble == "left out, as calls failed; the last: upstream_failed, status 500"
    for _ in range(3):
        state.worked()
        state.probed(healthy=True)
    for healthy in (False, False, True, True):
        state.probed(healthy=healthy)
    assert caplog.messages == [
        "target t is left out: too many calls failed; the last: upstream_failed, status 500",
        "target t works again",
        "target t is left out: its health path gives no good answer",
        "target t: its health path is well again",
    ]


def test_a_path_that_is_not_there_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """A 404 about a model is the caller's."""
    state = a_state()
    state.failed(UpstreamRejected("The model `x` does not exist", target="t", status=404), 0)
    assert not caplog.messages
    for _ in range(3):
        state.failed(UpstreamRejected("Not Found", target="t", status=404), 0)
    (said,) = caplog.messages
    assert "base_url" in said
