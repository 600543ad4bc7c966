"""A reply while its body is on its way."""

import weakref

from gateway.core.clock import SystemClock
from gateway.core.targets import Timeouts, UpstreamCall
from gateway.providers.openai_http import OpenAITarget
from tests.support.upstream import ScriptedUpstream


async def test_a_reply_is_gone_with_its_last_user(upstream: ScriptedUpstream) -> None:
    """It is no garbage that only a collection finds: one of those holds up all calls."""
    target = OpenAITarget("t", upstream.url, SystemClock())
    reply = await target.send(
        UpstreamCall(
            "/chat/completions", b'{"model":"m","messages":[]}', "req_1", False, Timeouts()
        )
    )
    await reply.read()
    await reply.aclose()
    watched = weakref.ref(reply)
    del reply
    assert watched() is None
    await target.aclose()
