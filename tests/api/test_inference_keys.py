"""Keys of ours that a target refuses inside an answer."""

import logging

import orjson
import pytest

from gateway.core.usage import Usage
from tests.support.gateway import MODEL, running_gateway
from tests.support.scripts import Script, Sse, answer, chat_chunk
from tests.support.upstream import ScriptedUpstream

_REFUSED = {"error": {"message": "key sk-one is wrong", "code": "invalid_api_key"}}


_PLAIN = answer(_REFUSED), answer(_REFUSED, 400)


@pytest.mark.parametrize(
    ("script", "stream"),
    [*((script, stream) for script in _PLAIN for stream in (True, False)), (Sse([_REFUSED]), True)],
)
def test_a_key_refused_inside_an_answer(
    upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture, script: Script, *, stream: bool
) -> None:
    """As one refused by status: the next key is tried, the operator told, the caller not."""
    upstream.on(lambda seen: "sk-one" in seen.headers["authorization"], script)
    target = {"base_url": upstream.url, "api_keys": ["sk-one", "sk-two"]}
    with running_gateway({"up": target}) as gateway:
        assert gateway.chat(stream=stream).status_code == 200
        assert gateway.settled(1)[0].outcome.attempts[0].code == "upstream_credential"
    assert len(upstream.calls()) == 2
    told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(told) == 1
    assert told[0].startswith("target up, key 1 of 2: refused, status 40")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", [200, 400])
def test_the_only_key_refused_inside_an_answer(
    upstream: ScriptedUpstream, status: int, *, stream: bool
) -> None:
    """A 502 without the target's words, and no charge."""
    upstream.on(MODEL, answer(_REFUSED, status))
    with running_gateway({"up": {"base_url": upstream.url, "api_key": "sk-one"}}) as gateway:
        got = gateway.chat(stream=stream)
        assert got.status_code == 502
        assert got.json()["error"]["code"] == "upstream_credential"
        assert "wrong" not in got.text
        assert gateway.settled(1)[0].outcome.usage == Usage()


@pytest.mark.parametrize("stream", [True, False])
def test_a_model_may_speak_of_keys(upstream: ScriptedUpstream, *, stream: bool) -> None:
    """What it writes is an answer, whatever it looks like."""
    text = orjson.dumps(_REFUSED).decode()
    plain = {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}
    events = Sse([chat_chunk(text), chat_chunk(finish="stop")])
    upstream.enqueue(events if stream else answer(plain))
    with running_gateway({"up": {"base_url": upstream.url, "api_key": "sk-one"}}) as gateway:
        got = gateway.chat(stream=stream)
        assert got.status_code == 200
        assert orjson.dumps(text) in got.content
        assert len(upstream.calls()) == 1


def test_a_key_refused_after_the_first_event(
    upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    """The stream has begun, so it ends with an error of ours; the operator is told all the same."""
    upstream.enqueue(Sse([chat_chunk("", role="assistant"), _REFUSED], pause=0.05))
    with running_gateway({"up": {"base_url": upstream.url, "api_key": "sk-one"}}) as gateway:
        got = gateway.chat(stream=True)
        assert '"upstream_credential"' in got.text
        assert "wrong" not in got.text
        gateway.settled(1)
    assert "target up, its key: refused, status 401" in caplog.text
