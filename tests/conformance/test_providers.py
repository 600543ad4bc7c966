"""Every page of ``docs/providers/``: its policy reaches the provider as the provider wants it."""

from urllib.parse import urlsplit

import pytest

from tests.support.docs import ROOT, links
from tests.support.providers import KEY, behind, target_of
from tests.support.scripts import Sse, answer, chat_chunk
from tests.support.upstream import ScriptedUpstream

PAGES = sorted(
    path.stem for path in (ROOT / "docs/providers").glob("*.md") if path.stem != "README"
)
KEYLESS = {"headway-worker", "ollama", "sglang", "tensorrt-llm", "tgi"}
#: Where each provider takes chats, as its documentation says.
PATHS = {
    "groq": "/openai/v1/chat/completions",
    "openrouter": "/api/v1/chat/completions",
    "gemini": "/v1beta/openai/chat/completions",
    "azure": "/openai/v1/chat/completions",
}
PLAIN = {"id": "x", "object": "chat.completion", "choices": [{"message": {"content": "Hi"}}]}


@pytest.mark.parametrize("page", [page for page in PAGES if page != "headway-worker"])
def test_calls_arrive_as_the_provider_wants_them(upstream: ScriptedUpstream, page: str) -> None:
    """Path, credential, the provider's own model name and its headers, plain and streamed."""
    upstream.enqueue(answer(PLAIN), Sse([chat_chunk("Hi"), chat_chunk(finish="stop")]))
    with behind(upstream, page) as provider:
        assert provider.chat()[0] == 200
        assert provider.stream()[-1] == "[DONE]"
    target = target_of(page)
    models = target["models"]
    served = next(iter(models.values())) if isinstance(models, dict) else models[0]
    header, value = ("api-key", KEY) if page == "azure" else ("authorization", f"Bearer {KEY}")
    for seen in upstream.calls():
        assert seen.path == PATHS.get(page, "/v1/chat/completions")
        assert seen.headers.get(header) == (None if page in KEYLESS else value)
        assert seen.json["model"] == served
        assert not [n for n, v in target.get("headers", {}).items() if seen.headers[n] != v]
    streamed = upstream.calls()[1].json
    assert ("stream_options" in streamed) is (page != "mistral")


def test_the_worker_elsewhere_is_asked_with_a_rank(upstream: ScriptedUpstream) -> None:
    """It is a target like any other then."""
    elsewhere = target_of("headway-worker", name="elsewhere")
    with behind(upstream, "headway-worker", **elsewhere) as provider:
        assert provider.chat(max_tokens=2)[0] == 200
    assert upstream.calls()[0].json["priority"] == 0


@pytest.mark.parametrize("page", PAGES)
def test_each_page_says_what_it_rests_on(page: str) -> None:
    """Sources, and whether anything was run live; the overview leads to it."""
    text = (ROOT / f"docs/providers/{page}.md").read_text()
    assert "https://" in text.split("Sources: ")[1]
    assert "un live" in text
    assert ROOT / f"docs/providers/{page}.md" in links(ROOT / "docs/providers/README.md")


@pytest.mark.parametrize("page", [page for page in PAGES if page != "headway-worker"])
def test_addresses_are_safe_ones(page: str) -> None:
    """A provider's is encrypted, a server of one's own is on this machine."""
    parts = urlsplit(target_of(page)["base_url"])
    assert (parts.scheme, parts.hostname) == ("http", "127.0.0.1") or parts.scheme == "https"
