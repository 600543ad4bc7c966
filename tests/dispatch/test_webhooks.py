"""Tenants are told what ended: once, signed, whatever fails on the way."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
from openai import OpenAI

from gateway.dispatch.webhooks import Patience, Webhooks, endpoint_id
from gateway.jobs.finish import JobFinisher
from gateway.policy.model import Policy
from gateway.providers.webhooks import WebhookSender
from gateway.store.deliveries import Deliveries
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane
from tests.support.scripts import answer
from tests.support.upstream import ScriptedUpstream

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef").decode()


def _policy(*hooks: dict[str, Any]) -> Policy:
    target = {"base_url": "http://127.0.0.1:9/v1", "models": ["m"]}
    tenants = {"a": {"webhooks": [{"secret": SECRET, **hook} for hook in hooks]}}
    return Policy.model_validate({"targets": {"up": target}, "tenants": tenants})


@pytest.fixture
async def sender() -> AsyncIterator[WebhookSender]:
    sender = WebhookSender(allow_private=True, seconds=2)
    yield sender
    await sender.aclose()


def _webhooks(
    plane: BatchPlane, sender: WebhookSender, policy: Policy, total: float = 3600.0
) -> Webhooks:
    patience = Patience(base=0.001, cap=0.002, total=total)
    deliveries = Deliveries(plane.store, plane.blobs)
    return Webhooks(policy, plane.batches, deliveries, sender, patience, plane.clock)


async def _all(webhooks: Webhooks, tries: int = 40) -> None:
    for _ in range(tries):
        await webhooks.announce_batch()
        await webhooks.send_one()


def _taking(upstream: ScriptedUpstream) -> str:
    upstream.on(lambda seen: True, answer({}))
    return f"{upstream.url}/hook"


async def test_every_end_of_a_batch_is_told(
    plane: BatchPlane, sender: WebhookSender, upstream: ScriptedUpstream
) -> None:
    """completed, failed, cancelled, expired: each once, in a form the official client accepts."""
    webhooks = _webhooks(plane, sender, _policy({"url": _taking(upstream)}))
    done = await plane.start(chat_line("1", "x"))
    await plane.run(1)
    failed = await plane.start(chat_line("1", "x", model="unknown"))
    cancelled = await plane.start(chat_line("1", "x"))
    await plane.a.post(f"/v1/batches/{cancelled}/cancel")
    expired = await plane.start(chat_line("1", "x"), completion_window="1s")
    while not (await plane.queue.tick("m.0", 10)).expired:
        pass
    await plane.finish()
    await _all(webhooks)
    seen = {}
    with OpenAI(api_key="k", webhook_secret=SECRET) as client:
        for call in upstream.calls():
            event = client.webhooks.unwrap(call.body, call.headers)
            assert event.id == call.headers["webhook-id"]
            seen[event.data.id] = event.type  # type: ignore[union-attr]  # batch events have one
    assert seen == {
        done: "batch.completed",
        failed: "batch.failed",
        cancelled: "batch.cancelled",
        expired: "batch.expired",
    }
    assert len(upstream.calls()) == 4


async def test_each_endpoint_gets_what_it_asked_for(
    plane: BatchPlane, sender: WebhookSender, upstream: ScriptedUpstream
) -> None:
    """Events that were not chosen are not sent; another tenant's endpoint hears nothing."""
    url = _taking(upstream)
    policy = _policy({"url": url + "1", "events": ["batch.failed"]}, {"url": url + "2"})
    webhooks = _webhooks(plane, sender, policy)
    assert not await webhooks.announce("batch.completed", "batch_1", "a", 5)
    assert await webhooks.announce("batch.completed", "batch_2", "b", 5)
    await _all(webhooks)
    assert [call.path for call in upstream.calls()] == ["/v1/hook2"]
    assert await webhooks.announce("batch.completed", "batch_1", "a", 5)


async def test_a_refused_one_is_sent_again(
    plane: BatchPlane, sender: WebhookSender, upstream: ScriptedUpstream
) -> None:
    """With the same id, until it is taken; then never again."""
    upstream.enqueue(*(answer({}, 500) for _ in range(3)))
    webhooks = _webhooks(plane, sender, _policy({"url": _taking(upstream)}))
    await webhooks.announce("job.completed", "job_1", "a", 5)
    await _all(webhooks, 200)
    assert len(upstream.calls()) == 4
    assert len({call.headers["webhook-id"] for call in upstream.calls()}) == 1


async def test_it_is_given_up_in_the_end(
    plane: BatchPlane,
    sender: WebhookSender,
    upstream: ScriptedUpstream,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """After the time it has; the log names neither address nor secret."""
    upstream.on(lambda seen: True, answer({}, 500))
    webhooks = _webhooks(plane, sender, _policy({"url": f"{upstream.url}/hook"}), total=0.0)
    await webhooks.announce("batch.completed", "batch_1", "a", 5)
    await _all(webhooks)
    assert len(upstream.calls()) == 1
    assert "given up" in caplog.text
    assert SECRET not in caplog.text
    assert "hook" not in caplog.text.replace("webhooks", "")


async def test_an_endpoint_that_is_gone_is_dropped(
    plane: BatchPlane, sender: WebhookSender, upstream: ScriptedUpstream
) -> None:
    """The policy does not have it any more."""
    before = _webhooks(plane, sender, _policy({"url": _taking(upstream)}))
    await before.announce("batch.completed", "batch_1", "a", 5)
    await _all(_webhooks(plane, sender, _policy()))
    assert upstream.calls() == []
    assert await before.announce("batch.completed", "batch_1", "a", 5)


async def test_a_lost_queue_loses_no_webhook(
    plane: BatchPlane, sender: WebhookSender, upstream: ScriptedUpstream
) -> None:
    """What was not told is found again on disk, with its id; what was told is not repeated."""
    upstream.enqueue(answer({}, 500))
    webhooks = _webhooks(plane, sender, _policy({"url": _taking(upstream)}))
    await plane.start(chat_line("1", "x"))
    await plane.run(1)
    await plane.finish()
    await webhooks.announce_batch()
    await webhooks.send_one()
    for expected in (2, 2):
        await plane.store.execute_command("FLUSHALL")
        for _ in range(2):
            await plane.reconciler.step()
        await _all(webhooks)
        assert len(upstream.calls()) == expected
    assert len({call.headers["webhook-id"] for call in upstream.calls()}) == 1


async def test_every_end_of_a_job_is_told(
    plane: BatchPlane, sender: WebhookSender, upstream: ScriptedUpstream
) -> None:
    """completed, failed, cancelled: each once; nothing is kept on disk once all know."""
    webhooks = _webhooks(plane, sender, _policy({"url": _taking(upstream)}))
    finisher = JobFinisher(plane.jobs, plane.blobs, plane.queue, plane.clock, webhooks.tell)
    plane.finishing._jobs = finisher
    done = (await plane.job("good"))["id"]
    await plane.run(9)
    failed = (await plane.job("bad"))["id"]
    await plane.run(9, lambda row: False)
    cancelled = (await plane.job("late"))["id"]
    await plane.a.post(f"/v1/jobs/{cancelled}/cancel")
    await plane.finish()
    await _all(webhooks)
    told = {call.json["data"]["id"]: call.json["type"] for call in upstream.calls()}
    assert told == {done: "job.completed", failed: "job.failed", cancelled: "job.cancelled"}
    assert len(upstream.calls()) == 3
    assert await plane.blobs.list("hooks/") == []


async def test_what_redis_loses_is_kept_on_disk(
    plane: BatchPlane, sender: WebhookSender, upstream: ScriptedUpstream
) -> None:
    """Told after the loss with the same id; an event nobody wants is not kept."""
    upstream.enqueue(answer({}, 500))
    url = _taking(upstream)
    webhooks = _webhooks(plane, sender, _policy({"url": url, "events": ["job.completed"]}))
    await webhooks.tell("job.failed", "job_1", "a", 5)
    assert await plane.blobs.list("hooks/") == []
    await webhooks.tell("job.completed", "job_2", "a", 5)
    await webhooks.send_one()
    await plane.store.execute_command("FLUSHALL")
    await webhooks.announce_kept()
    await _all(webhooks)
    assert len(upstream.calls()) == 2
    assert len({call.headers["webhook-id"] for call in upstream.calls()}) == 1
    assert await plane.blobs.list("hooks/") == []


def test_an_endpoint_is_named_without_its_address() -> None:
    """Always the same name, and none that tells where it is."""
    assert endpoint_id("https://x.example/secret") == endpoint_id("https://x.example/secret")
    assert "example" not in endpoint_id("https://x.example/secret")
