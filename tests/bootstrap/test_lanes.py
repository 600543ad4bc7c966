"""The lanes of a policy's targets."""

from pathlib import Path
from typing import Any

from gateway.bootstrap.lanes import Lanes
from gateway.core.load import TargetLoad
from gateway.core.settings import Settings
from gateway.dispatch.fleet import Fleet
from gateway.dispatch.hurry import Hurry
from gateway.dispatch.load import InteractiveLoad
from gateway.policy.model import Policy
from gateway.store.keys import shard_of
from gateway.store.load import LoadWord
from tests.support.clock import ManualClock


class _Made:
    """Lanes of targets that differ in their batch lane, with the signals that move them."""

    def __init__(self, tmp_path: Path, **targets: Any) -> None:
        self.clock = ManualClock()
        self.load, self.hurry = InteractiveLoad(self.clock), Hurry()
        policy = Policy.model_validate(
            {
                "targets": {
                    name: {"base_url": "http://127.0.0.1:1/v1", "models": ["m"], **members}
                    for name, members in targets.items()
                }
            }
        )
        settings = Settings(data_dir=tmp_path)
        self.fleet = Fleet("me", self.clock)
        self.fleet.begin()
        self.lanes = Lanes(settings, self.load, self.hurry, self.fleet, self.clock).of(policy)

    def hear(self, **calls: tuple[int, int]) -> None:
        """A gateway says how many calls are where, and how many of them wait for a token."""
        self.load.hear(LoadWord("g", {name: TargetLoad(*load) for name, load in calls.items()}))

    def free(self, name: str) -> bool:
        """Whether a row may start at a target now."""
        return self.lanes[name].wait(10) == 0


def test_what_a_lane_lets_in_at_first(tmp_path: Path) -> None:
    """An engine of ours is filled at once; a provider gets 16 rows, or what its limits allow."""
    made = _Made(
        tmp_path,
        a={"kind": "vllm"},
        b={"lanes": {"batch": {"max_in_flight": 3}}, "limits": {"requests_per_minute": 30}},
        c={"lanes": {"batch": {"max_in_flight": 0}}},
        d={},
    )
    assert {name: lane.window() for name, lane in made.lanes.items()} == {"a": 64, "b": 1, "d": 16}


def test_a_shared_engine_waits_for_first_tokens(tmp_path: Path) -> None:
    """A provider does not; and late work does not wait either."""
    made = _Made(tmp_path, engine={"kind": "vllm"}, cloud={"base_url": "https://x/v1"})
    made.hear(engine=(1, 1), cloud=(1, 1))
    assert not made.free("engine")
    assert made.free("cloud")
    made.hurry.note(shard_of("m"), True)
    assert made.free("engine")


def test_rows_go_to_idle_replicas_only(tmp_path: Path) -> None:
    """``when: idle`` keeps a target for people while there are any, and while nothing is known."""
    made = _Made(tmp_path, chat={"lanes": {"batch": {"when": "idle"}}})
    assert not made.free("chat")
    made.hear()
    assert made.free("chat")
    made.hear(chat=(1, 0))
    assert not made.free("chat")
    assert made.lanes["chat"].window() == 0


def test_a_target_for_what_would_be_late(tmp_path: Path) -> None:
    """``when: late`` takes rows only while a deadline is at risk."""
    made = _Made(tmp_path, cloud={"base_url": "https://x/v1", "lanes": {"batch": {"when": "late"}}})
    made.hear()
    assert not made.free("cloud")
    made.hurry.note(shard_of("m"), True)
    assert made.free("cloud")
    made.hurry.note(shard_of("m"), False)
    assert not made.free("cloud")


def test_a_change_of_load_wakes_the_lane(tmp_path: Path) -> None:
    """The end of the last call lets rows start at once, not at the next look."""
    made = _Made(tmp_path, engine={})
    woken: list[int] = []
    made.lanes["engine"].users.append(lambda: woken.append(1))
    made.hear(engine=(1, 1))
    made.hear(engine=(1, 1))
    made.hear(engine=(1, 0))
    made.hear()
    assert len(woken) == 3


def test_an_engine_of_ours_is_watched(tmp_path: Path) -> None:
    """Beside its rows count the calls that have their first token; a provider is no engine."""
    made = _Made(tmp_path, engine={"kind": "vllm"}, cloud={"base_url": "https://x/v1"})
    made.hear(engine=(5, 2))
    assert made.lanes["cloud"].watch is None
    assert made.lanes["engine"].watch is not None
    caps = made.lanes["engine"].pacer.caps()
    assert (caps.rows, caps.prompts) == (64, 1)
    made.hear()
    assert made.lanes["engine"].pacer.caps().prompts == 8
