"""POST /v1/chat/completions, judged by the official client."""

import openai
import pytest

from tests.support.gateway import KEY, MODEL, running_gateway
from tests.support.upstream import ScriptedUpstream


def test_vendor_members_reach_the_target(upstream: ScriptedUpstream) -> None:
    """What the client adds in extra_body arrives unchanged."""
    with (
        running_gateway({"up": {"base_url": upstream.url}}) as gateway,
        openai.OpenAI(base_url=gateway.url, api_key=KEY) as client,
    ):
        client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "x"}],
            extra_body={"top_k": 4, "chat_template_kwargs": {"thinking": False}},
        )
        sent = upstream.calls()[0].json
        assert (sent["top_k"], sent["chat_template_kwargs"]) == (4, {"thinking": False})


def test_sdk_sees_our_errors(upstream: ScriptedUpstream) -> None:
    """A wrong parameter raises the client's own kind of error with code and param."""
    with (
        running_gateway({"up": {"base_url": upstream.url}}) as gateway,
        openai.OpenAI(base_url=gateway.url, api_key=KEY) as client,
        pytest.raises(openai.BadRequestError) as caught,
    ):
        client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "x"}], temperature=3
        )
    assert (caught.value.code, caught.value.param) == ("decimal_above_max_value", "temperature")
    assert not upstream.calls()
