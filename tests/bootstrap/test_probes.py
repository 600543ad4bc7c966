"""What readiness is made of."""

import logging

import pytest

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


async def test_the_store_is_told_once_when_it_goes_and_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One sentence each, also when it was away from the start; nothing while all is well."""
    answers = [False, False, True, True, False]

    async def ping() -> None:
        if not answers.pop(0):
            raise StoreUnavailable("away")

    policy = {"targets": {"up": {"base_url": "http://127.0.0.1:1/v1", "models": ["m"]}}}
    watch = Watch(Policy.model_validate(policy), ping)
    with caplog.at_level(logging.INFO):
        while answers:
            await watch.look()
    said = [record.getMessage().split(":")[0] for record in caplog.records]
    away, back = "the queue server does not answer", "the queue server answers again"
    assert said == [away, back, away]


async def test_a_store_that_is_there_is_not_worth_a_word(caplog: pytest.LogCaptureFixture) -> None:
    """The usual start is silent."""

    async def ping() -> None:
        """Answer."""

    policy = {"targets": {"up": {"base_url": "http://127.0.0.1:1/v1", "models": ["m"]}}}
    watch = Watch(Policy.model_validate(policy), ping)
    with caplog.at_level(logging.INFO):
        await watch.look()
    assert not caplog.records
