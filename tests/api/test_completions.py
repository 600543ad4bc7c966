"""POST /v1/completions, judged by the official client."""

import openai
import pytest

from tests.support.gateway import KEY, MODEL, running_gateway
from tests.support.upstream import ScriptedUpstream


@pytest.mark.parametrize(
    ("prompt", "choices"), [("a b", 1), (["a", "b", "c"], 3), ([1, 2, 3], 1), ([[1], [2, 3]], 2)]
)
def test_every_form_of_prompt(upstream: ScriptedUpstream, prompt: object, choices: int) -> None:
    """A text, texts, tokens and token arrays."""
    with (
        running_gateway({"up": {"base_url": upstream.url}}) as gateway,
        openai.OpenAI(base_url=gateway.url, api_key=KEY) as client,
    ):
        got = client.completions.create(model=MODEL, prompt=prompt)  # type: ignore[call-overload]
        assert len(got.choices) == choices
        streamed = client.completions.create(model=MODEL, prompt="a", stream=True)
        assert "".join(chunk.choices[0].text for chunk in streamed).endswith("w15")
        assert upstream.calls()[0].json["prompt"] == prompt


def test_large_arrays_are_elastic(upstream: ScriptedUpstream) -> None:
    """An array of prompts is classified by its size."""
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        for size, lane in ((16, "interactive"), (17, "elastic")):
            got = gateway.post("/v1/completions", {"model": MODEL, "prompt": ["x"] * size})
            assert got.headers["x-headway-class"] == lane
