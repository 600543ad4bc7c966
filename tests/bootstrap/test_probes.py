"""What readiness is made of."""

from gateway.bootstrap.probes import Watch
from gateway.core.errors import StoreUnavailable
from gateway.policy.model import Policy
from tests.support.upstream import ScriptedUpstream


async def test_one_target_of_two_is_enough(upstream: ScriptedUpstream) -> None:
    """DEP-05: the dead one does not make the gateway unready, all dead do."""
    targets = {
        "up": {"base_url": upstream.url, "models": ["m"]},
        "down": {"base_url": "http://127.0.0.1:1/v1", "models": ["n"]},
    }

    async def away() -> None:
        raise StoreUnavailable("away")

    watch = Watch(Policy.model_validate({"targets": targets}), away)
    await watch.look()
    assert await watch.targets()
    assert not await watch.store()
    upstream.refuse()
    await watch.look()
    assert not await watch.targets()
