"""Azure OpenAI, scripted from its published reference; see ``docs/providers/azure.md``."""

import openai
import orjson

from tests.support.gateway import KEY as CLIENT_KEY
from tests.support.providers import KEY, behind
from tests.support.scripts import Sse, answer, chat_chunk, usage_chunk
from tests.support.upstream import ScriptedUpstream

SAFE = {"hate": {"filtered": False, "severity": "safe"}}
VERDICT = [{"prompt_index": 0, "content_filter_results": SAFE}]
FIRST = {
    "choices": [],
    "created": 0,
    "id": "",
    "model": "",
    "object": "",
    "prompt_filter_results": VERDICT,
}
FILTERED = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's policy.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {"hate": {"filtered": True, "severity": "high"}},
        },
    }
}


def test_the_dated_api(upstream: ScriptedUpstream) -> None:
    """Deployment in the path, version in the query, the key in its own header."""
    upstream.enqueue(answer({"choices": []}), answer({"data": []}))
    with behind(upstream, "azure", 1) as provider:
        assert provider.chat()[0] == 200
        found = provider.gateway.post("/v1/embeddings", {"model": provider.model, "input": "a"})
        assert found.status_code == 200
    paths = [seen.path for seen in upstream.calls()]
    assert paths == [
        "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21",
        "/openai/deployments/my-deployment/embeddings?api-version=2024-10-21",
    ]
    assert all(seen.headers["api-key"] == KEY for seen in upstream.calls())


def test_a_token_of_entra(upstream: ScriptedUpstream) -> None:
    """A bearer token in place of the key."""
    upstream.enqueue(answer({"choices": []}))
    with behind(upstream, "azure", 2) as provider:
        assert provider.chat()[0] == 200
    headers = upstream.calls()[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert "api-key" not in headers


def test_code_written_for_openai_reads_the_stream(upstream: ScriptedUpstream) -> None:
    """``choices[0].delta`` is there in every chunk, the verdicts are not lost."""
    later = {"index": 0, "finish_reason": None, "content_filter_results": SAFE}
    remark = {"id": "", "object": "", "created": 0, "model": "", "choices": [later]}
    chunks = [FIRST, chat_chunk("", role="assistant"), chat_chunk("Hi"), remark]
    upstream.enqueue(Sse([*chunks, chat_chunk(finish="stop"), usage_chunk(3, 1)]))
    with behind(upstream, "azure") as provider:
        with openai.OpenAI(base_url=provider.gateway.url, api_key=CLIENT_KEY) as client:
            stream = client.chat.completions.create(
                model=provider.model, messages=[{"role": "user", "content": "x"}], stream=True
            )
            seen = list(stream)
        assert "".join(c.choices[0].delta.content or "" for c in seen) == "Hi"
        assert (seen[0].model_extra or {})["prompt_filter_results"] == VERDICT
        assert provider.usage() == (3, 1, False)


def test_a_filtered_prompt(upstream: ScriptedUpstream) -> None:
    """400 with the code that Azure documents, plain and streamed; nothing is tried again."""
    upstream.enqueue(answer(FILTERED, 400), answer(FILTERED, 400))
    with behind(upstream, "azure") as provider:
        for stream in (False, True):
            status, error = provider.error(stream=stream)
            assert (status, error["code"], error["param"]) == (400, "content_filter", "prompt")
    assert len(upstream.calls()) == 2


def test_a_filtered_answer(upstream: ScriptedUpstream) -> None:
    """The finish reason says so, and the answer counts as whole."""
    upstream.enqueue(Sse([FIRST, chat_chunk("H"), chat_chunk(finish="content_filter")]))
    with behind(upstream, "azure") as provider:
        *chunks, done = provider.stream()
    assert done == "[DONE]"
    assert orjson.loads(chunks[-1])["choices"][0]["finish_reason"] == "content_filter"


def test_an_error_after_the_verdict(upstream: ScriptedUpstream) -> None:
    """Only the verdict had come, so the error keeps a status of its own."""
    upstream.enqueue(Sse([FIRST, FILTERED], end="close"))
    with behind(upstream, "azure") as provider:
        status, error = provider.error(stream=True)
    assert (status, error["code"]) == (400, "content_filter")


def test_refusals(upstream: ScriptedUpstream) -> None:
    """A wrong key is ours to mend, an unknown deployment is told, a wait is passed on."""
    denied = {"statusCode": 401, "message": "Unauthorized. Access token is missing or expired."}
    missing = {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}
    busy = {"error": {"code": "429", "message": "Requests have exceeded the call rate limit."}}
    upstream.enqueue(
        answer(denied, 401),
        answer({"error": missing}, 404),
        answer(busy, 429, headers={"retry-after-ms": "6500", "retry-after": "7"}),
    )
    with behind(upstream, "azure") as provider:
        assert provider.error()[0] == 502
        status, error = provider.error()
        assert (status, error["code"]) == (404, "DeploymentNotFound")
        throttled = provider.gateway.chat(model=provider.model)
    assert throttled.status_code == 429
    assert throttled.headers["retry-after"] == "7"
