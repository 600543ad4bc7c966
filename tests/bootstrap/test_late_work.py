"""Cost caps of a policy, at work on its lanes."""

from pathlib import Path

from gateway.bootstrap.lanes import Lanes
from gateway.bootstrap.late_work import capped_shards, purse_keeper
from gateway.core.settings import Settings
from gateway.dispatch.fleet import Fleet
from gateway.dispatch.hurry import Hurry
from gateway.dispatch.load import InteractiveLoad
from gateway.policy.model import Policy
from gateway.store.client import StoreClient
from gateway.store.keys import shard_of
from tests.support.clock import ManualClock


async def test_late_rows_move_within_the_cap(tmp_path: Path, store: StoreClient) -> None:
    """While a deadline is at risk and money is left; then the shard is told to be capped."""
    clock, hurry = ManualClock(86_400.0), Hurry()
    cloud = {
        "base_url": "https://x/v1",
        "models": ["m"],
        "price": {"input": 1, "output": 2},
        "lanes": {"batch": {"when": "late", "late": {"max_cost": 0.01}}},
    }
    own = {"base_url": "http://127.0.0.1:1/v1", "models": ["m", "n"]}
    policy = Policy.model_validate({"targets": {"own": own, "cloud": cloud}})
    fleet = Fleet("me", clock)
    fleet.begin()
    settings = Settings(data_dir=tmp_path)
    lanes = Lanes(settings, InteractiveLoad(clock), hurry, fleet, clock).of(policy)
    keeper, capped = purse_keeper(lanes, store, "me", clock), capped_shards(policy, lanes)
    lane = lanes["cloud"]
    woken: list[int] = []
    lane.users.append(lambda: woken.append(1))
    await keeper.step()
    hurry.note(shard_of("m"), True)
    assert lane.wait(100) > 0
    await keeper.step()
    assert woken
    assert lane.wait(100) == 0
    assert lane.wait(5001) > 0
    await keeper.step()
    assert lane.wait(5001) > 0
    assert (capped(shard_of("m")), capped(shard_of("n"))) == (True, False)
    hurry.note(shard_of("m"), False)
    await keeper.step()
    assert not capped(shard_of("m"))
