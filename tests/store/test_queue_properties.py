"""The scripts against the model, over random histories; invariants after each step."""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import replace
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

from gateway.core.errors import RateLimited
from gateway.core.work import Quota, RowFailure, TryKind
from gateway.store.client import connect
from gateway.store.control import Scope
from gateway.store.embedded import EmbeddedServer
from gateway.store.keys import shard_key
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

    def key(self, name: str) -> str:
        return shard_key(SHARD, name)

    @rule(
        sizes=st.lists(st.integers(1, 300), min_size=1, max_size=40),
        tenant=st.sampled_from("abc"),
        weight=st.sampled_from([1, 2]),
        start=st.sampled_from(["now", "now", "delayed", "held"]),
        limit=st.sampled_from([Quota(), Quota(), Quota(rows=50), Quota(tokens=5000)]),
    )
    def enqueue(self, sizes: list[int], tenant: str, weight: int, start: str, limit: Quota) -> None:
        name = f"s{self.names}.0"
        self.names += 1
        delay = 600_000 if start == "delayed" else 0
        given = segment(
            name, len(sizes), tenant=tenant, weight=weight, tokens=sizes, delay_ms=delay
        )
        rows, tokens = self.model.queued(tenant)
        over = 0 < limit.rows < rows + len(sizes) or 0 < limit.tokens < tokens + sum(sizes)
        spec = replace(given, held=start == "held")
        try:
            self.do(self.queue.enqueue(SHARD, spec, limit))
        except RateLimited:
            assert over
            return
        assert not over
        model = ModelSegment(tenant, weight, sizes, start == "delayed", start == "held")
        self.model.segments[name] = model

    @rule(
        sizes=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 300)), max_size=8),
        limit=st.sampled_from([Quota(), Quota(rows=50), Quota(tokens=5000)]),
        again=st.booleans(),
    )
    def enqueue_jobs(self, sizes: list[tuple[str, int]], limit: Quota, again: bool) -> None:
        """Several in one step, as jobs come; perhaps one of them twice, perhaps one that is old."""
        wanted, expected = [], []
        for tenant, size in sizes:
            name = f"s{self.names}.0"
            self.names += 1
            rows, tokens = self.model.queued(tenant)
            over = 0 < limit.rows < rows + 1 or 0 < limit.tokens < tokens + size
            wanted.append((segment(name, 1, tenant=tenant, tokens=size), limit))
            expected.append(RateLimited if over else True)
            if not over:
                self.model.segments[name] = ModelSegment(tenant, 1, [size], False, False)
        known = [name for name in self.model.segments if again]
        wanted += [(segment(name, 1), limit) for name in known[:1] + known[-1:]]
        expected += [False] * (len(wanted) - len(expected))
        if wanted:
            answers = self.do(self.queue.enqueue_all(SHARD, wanted))
            assert [a if isinstance(a, bool) else type(a) for a in answers] == expected

    @precondition(lambda self: self.model.segments)
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model.segments)))
        assert self.do(self.queue.start(SHARD, name))
        self.model.segments[name].held = False

    @precondition(lambda self: self.model.segments)
    @rule(data=st.data(), kind=st.sampled_from(["segment", "tenant", "shard"]), on=st.booleans())
    def pause_or_resume(self, data: st.DataObject, kind: str, on: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.model.segments)))
        tenant = self.model.segments[name].tenant
        scope = {"segment": Scope("segment", name), "tenant": Scope("tenant", tenant)}.get(kind)
        scope = scope or Scope()
        self.do((self.queue.pause if on else self.queue.resume)(SHARD, scope))
        if kind == "segment":
            self.model.segments[name].paused = on
        else:
            change = self.model.paused.add if on else self.model.paused.discard
            change((scope.kind, scope.name))

    @precondition(lambda self: self.model.segments)
    @rule(data=st.data(), priority=st.integers(-100, 100))
    def reprioritise(self, data: st.DataObject, priority: int) -> None:
        """Changes an order, and nothing else."""
        name = data.draw(st.sampled_from(sorted(self.model.segments)))
        self.do(self.queue.reprioritise(SHARD, Scope("segment", name), priority))

    @precondition(lambda self: self.model.segments)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model.segments)))
        self.do(self.queue.cancel(SHARD, name, 600_000))
        self.model.cancel(name)

    @rule()
    def time_comes(self) -> None:
        """Every delay ends, as if hours had passed."""
        for name, expected in self.model.segments.items():
            retries = self.key(f"r:{name}")
            self.do(self.client.execute_command("ZUNIONSTORE", retries, 1, retries, "WEIGHTS", 0))
            if expected.delayed:
                self.do(self.client.execute_command("HSET", self.key(f"s:{name}"), "nb", 1))
        later = self.key("later")
        self.do(self.client.execute_command("ZUNIONSTORE", later, 1, later, "WEIGHTS", 0))
        self.do(self.queue.tick(SHARD, 1000))
        self.model.time_comes()

    @precondition(lambda self: any(self.model.closed()))
    @rule()
    def finish_and_purge(self) -> None:
        """I10: a segment that is over can be forgotten, whoever still holds rows of it."""
        claim = self.do(self.queue.finish_claim(SHARD, "f", 600_000))
        assert claim is not None
        name = claim.segment
        assert name in set(self.model.closed())
        assert self.do(self.queue.finish_commit(SHARD, name, claim.fence))
        assert self.do(self.queue.purge(SHARD, name))
        self.model.purge(name)
        keys = self.do(self.client.execute_command("KEYS", "*"))
        assert not [key for key in keys if key.endswith(f":{name}".encode())]

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

    @precondition(lambda self: self.past)
    @rule(data=st.data(), part=st.integers(1, 20))
    def nack(self, data: st.DataObject, part: int) -> None:
        """Only what the lease still holds counts, and waits for its time."""
        lease_id, name, rows = data.draw(st.sampled_from(self.past))
        failures = [RowFailure(row, TryKind.ERROR, "x", 600_000) for row in rows[:part]]
        answer = self.do(self.queue.nack(SHARD, lease_id, name, failures, RULE))
        assert set(answer.requeued) == self.model.fail(lease_id, name, rows[:part])

    @precondition(lambda self: self.model.leases)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        lease_id = data.draw(st.sampled_from(list(self.model.leases)))
        self.do(self.queue.release(SHARD, lease_id))
        self.model.give_back(lease_id)

    @precondition(lambda self: self.model.leases)
    @rule(data=st.data())
    def run_out(self, data: st.DataObject) -> None:
        lease_id = data.draw(st.sampled_from(list(self.model.leases)))
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
    def quota_and_charge_agree(self) -> None:
        """I11 to the token; and nobody is charged less than what it got or holds."""
        for tenant in "abc":
            about = self.key(f"tn:{tenant}")
            read = self.client.execute_command
            rows, tokens, rested = self.do(read("HMGET", about, "rows", "tokens", "vt"))
            assert (int(rows or 0), int(tokens or 0)) == self.model.queued(tenant)
            active = self.do(read("ZSCORE", self.key("act"), tenant))
            charged = float(rested or 0) if active is None else float(active)
            assert charged > self.model.least_charge(tenant) - 0.001

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
