"""POST /v1/embeddings, judged by the official client."""

import openai
import pytest

from tests.support.answers import vector_of
from tests.support.gateway import KEY, MODEL, running_gateway
from tests.support.upstream import ScriptedUpstream


@pytest.mark.parametrize("form", ["float", None])
def test_vectors(upstream: ScriptedUpstream, form: str | None) -> None:
    """Numbers and base64 both arrive as the target made them; usage is metered."""
    with (
        running_gateway({"up": {"base_url": upstream.url}}) as gateway,
        openai.OpenAI(base_url=gateway.url, api_key=KEY) as client,
    ):
        wanted = {} if form is None else {"encoding_format": form}
        got = client.embeddings.create(model=MODEL, input=["a b", "c"], **wanted)  # type: ignore[arg-type]
        assert got.data[1].embedding == pytest.approx(vector_of("c"))
        usage = gateway.settled(1)[0].outcome.usage
        assert (usage.prompt, usage.completion) == (3, 0)
        assert gateway.post("/v1/embeddings", {"model": MODEL, "input": ""}).status_code == 400
