"""The models a key may use."""

import openai
import pytest

from tests.support.gateway import running_gateway
from tests.support.upstream import ScriptedUpstream

SLASHED = "org/model-7b"


def test_each_key_sees_its_own_models(upstream: ScriptedUpstream) -> None:
    """A restricted key sees and gets only its models; names may hold slashes."""
    targets = {"up": {"base_url": upstream.url, "models": ["m", SLASHED]}}
    keys = {"small": {"key": "sk-small-key-1", "models": [SLASHED]}}
    with (
        running_gateway(targets, keys=keys) as gateway,
        openai.OpenAI(base_url=gateway.url, api_key="sk-small-key-1", max_retries=0) as client,
    ):
        assert [model.id for model in client.models.list()] == [SLASHED]
        assert client.models.retrieve(SLASHED).object == "model"
        for name in ("m", "nope"):
            with pytest.raises(openai.NotFoundError) as caught:
                client.models.retrieve(name)
            assert caught.value.code == "model_not_found"
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        assert not upstream.calls()
