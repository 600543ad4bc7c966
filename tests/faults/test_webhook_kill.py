"""A webhook survives the dispatcher that was to send it and the queue that knew of it."""

import os
import signal
import time
from pathlib import Path

import pytest
from openai import OpenAI

from tests.support.batch import BatchClient, chat_line
from tests.support.scripts import answer
from tests.support.serve import headway, one_target, wait_for
from tests.support.upstream import ScriptedUpstream

_SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="


@pytest.mark.parametrize("victim", ["dispatch", pytest.param("queue", marks=pytest.mark.long)])
def test_it_arrives_with_one_id(
    tmp_path: Path, upstream: ScriptedUpstream, upstream2: ScriptedUpstream, victim: str
) -> None:
    """Refused twice and its sender killed: then taken once, and the official client agrees."""
    upstream2.enqueue(answer({}, 500), answer({}, 500))
    upstream2.on(lambda seen: True, answer({}))
    hook = {"url": f"{upstream2.url}/hook", "secret": _SECRET}
    policy = {**one_target(upstream.url), "tenants": {"default": {"webhooks": [hook]}}}
    env = {"HEADWAY_WEBHOOKS_ALLOW_PRIVATE": "1", "HEADWAY_WEBHOOK_BASE_SECONDS": "1"}
    with headway(tmp_path, policy, env) as running:
        batch = BatchClient(running).ended(BatchClient(running).start([chat_line("1", "x")])["id"])
        wait_for(upstream2.calls, 10, "the first try")
        os.kill(running.child(victim), signal.SIGKILL)
        wait_for(lambda: len(upstream2.calls()) >= 3, 40, "the third try")
        time.sleep(1)
        calls = upstream2.calls()
    assert [call.status for call in calls] == [500, 500, 200]
    assert len({call.headers["webhook-id"] for call in calls}) == 1
    with OpenAI(api_key="k", webhook_secret=_SECRET) as client:
        event = client.webhooks.unwrap(calls[-1].body, calls[-1].headers)
    assert event.type == "batch.completed"
    assert event.data.id == batch["id"]
    assert event.created_at == batch["completed_at"]
    assert _SECRET not in running.log.read_text()


def test_private_addresses_are_refused_by_default(
    tmp_path: Path, upstream: ScriptedUpstream, upstream2: ScriptedUpstream
) -> None:
    """The receiver hears nothing, the log says why, and the batch is as it is."""
    hook = {"url": f"{upstream2.url}/hook", "secret": _SECRET}
    policy = {**one_target(upstream.url), "tenants": {"default": {"webhooks": [hook]}}}
    with headway(tmp_path, policy) as running:
        client = BatchClient(running)
        assert client.ended(client.start([chat_line("1", "x")])["id"])["status"] == "completed"
        wait_for(lambda: "not public" in running.log.read_text(), 10, "the reason")
    assert upstream2.connections == 0
