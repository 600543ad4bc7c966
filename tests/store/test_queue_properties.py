"""The scripts against the model, over random histories; invariants after each step."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gateway.store.client import connect
from gateway.store.embedded import EmbeddedServer
from gateway.store.queue import QueueClient, RetryRule
from tests.store.queue_model import ModelSegment, QueueModel
from tests.support.segments import HOUR, SHARD, held, outcome, segment

_T = TypeVar("_T")
# Crashes never use a row up here: poison has tests of its own.
RULE = RetryRule(max_tries=1000, base_ms=0, cap_ms=0, max_crashes=1000)


class QueueMachine(RuleBasedStateMachine):
    """Every operation on the real server and on the model."""

    url: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.client = connect(self.url)
        self.do(self.client.execute_command("FLUSHALL"))
        self.queue = QueueClient(self.client)
        self.model = QueueModel()
        self.names = 0
        self.past: list[tuple[str, str, list[int]]] = []

    def do(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self.runner.run(work)

    def teardown(self) -> None:
        with contextlib.suppress(Exception):
            self.do(self.client.aclose())
        self.runner.close()

    @rule(rows=st.integers(1, 40), tenant=st.sampled_from("abc"), weight=st.sampled_from([1, 2]))
    def enqueue(self, rows: int, tenant: str, weight: int) -> None:
        name = f"s{self.names}.0"
        self.names += 1
        self.do(self.queue.enqueue(SHARD, segment(name, rows, tenant=tenant, weight=weight)))
        self.model.segments[name] = ModelSegment(rows)

    @rule(rows=st.integers(1, 30), tokens=st.sampled_from([150, 1000, 10**6]))
    def lease(self, rows: int, tokens: int) -> None:
        lease = self.do(self.queue.lease(SHARD, "w", rows, tokens, 600_000))
        if lease is None:
            assert not self.model.leasable()
            return
        assert lease.rows <= rows
        self.model.lease(lease.id, held(lease))
        for run in lease.runs:
            self.past.append((lease.id, run.segment, [row.index for row in run.rows]))

    @precondition(lambda self: self.past)
    @rule(data=st.data(), ok=st.booleans(), part=st.integers(1, 20))
    def commit(self, data: st.DataObject, ok: bool, part: int) -> None:
        """Of any lease there ever was: late and repeated commits are part of life."""
        lease_id, name, rows = data.draw(st.sampled_from(self.past))
        some = rows[:part]
        results = [outcome(row, ok=ok) for row in some]
        answer = self.do(self.queue.commit(SHARD, lease_id, name, results, HOUR))
        assert (answer.fresh, answer.closed) == self.model.commit(lease_id, name, some, ok=ok)

    @precondition(lambda self: self.model.leases)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        lease_id = data.draw(st.sampled_from(sorted(self.model.leases)))
        self.do(self.queue.release(SHARD, lease_id))
        self.model.give_back(lease_id)

    @precondition(lambda self: self.model.leases)
    @rule(data=st.data())
    def run_out(self, data: st.DataObject) -> None:
        lease_id = data.draw(st.sampled_from(sorted(self.model.leases)))
        self.do(self.client.execute_command("ZADD", f"gw:{{{SHARD}}}:exp", "XX", 1, lease_id))
        self.do(self.queue.reap(SHARD, 100, RULE))
        self.model.give_back(lease_id)

    @invariant()
    def nothing_is_lost(self) -> None:
        """I1, I2 and I11, by the online audit."""
        assert self.do(self.queue.audit(SHARD)) == []

    @invariant()
    def counters_agree(self) -> None:
        """Done rows and their outcome are those of the model (I4: they never go back)."""
        for name, expected in self.model.segments.items():
            view = self.do(self.queue.segment(SHARD, name))
            assert view is not None
            assert view.ok == sum(expected.done.values())
            assert view.ok + view.bad == len(expected.done)

    @invariant()
    def the_meter_is_what_was_delivered(self) -> None:
        """I3, to the token."""
        requests = prompt = 0
        for tenant in "abc":
            for figures in self.do(self.queue.meter(SHARD, tenant, [HOUR])).values():
                requests += figures["requests"]
                prompt += figures["prompt"]
        assert (requests, prompt) == (self.model.delivered, self.model.prompt)


@pytest.mark.parametrize("steps", [40])
def test_the_scripts_do_what_the_model_does(valkey_server: EmbeddedServer, steps: int) -> None:
    """Random histories of enqueue, lease, commit, release and expiry keep every invariant."""
    QueueMachine.url = valkey_server.url
    limits = settings(
        max_examples=25,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(QueueMachine, settings=limits)
