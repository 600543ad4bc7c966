"""The policies of ``docs/providers/``, led to the scripted upstream."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.support.docs import blocks
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.upstream import ScriptedUpstream

KEY = "sk-of-the-provider"


def target_of(page: str, number: int = 0, name: str | None = None) -> dict[str, Any]:
    """A target of the page's policy with that number, the first or the named one."""
    own = [block for block in blocks("policy") if block.page == f"docs/providers/{page}.md"]
    text = re.sub(r"\$\{\w+\}", KEY, own[number].text)
    targets: dict[str, dict[str, Any]] = yaml.safe_load(text)["targets"]
    return targets[name or next(iter(targets))]


@contextmanager
def behind(
    upstream: ScriptedUpstream, page: str, number: int = 0, **others: Any
) -> Iterator["Provider"]:
    """A gateway whose target is the page's, at the upstream's host and port."""
    target = {**target_of(page, number), "retry": {"attempts": 1}, **others}
    path = urlsplit(target["base_url"]).path
    target["base_url"] = f"http://127.0.0.1:{upstream.port}{path}"
    with running_gateway({page: target}) as gateway:
        yield Provider(gateway, next(iter(target["models"])))


class Provider:
    """A gateway before one provider."""

    def __init__(self, gateway: RunningGateway, model: str) -> None:
        self.gateway = gateway
        self.model = model

    def chat(self, **members: Any) -> tuple[int, dict[str, Any]]:
        """Status and body of a plain call."""
        answer = self.gateway.chat(model=self.model, **members)
        body: dict[str, Any] = answer.json()
        return answer.status_code, body

    def error(self, **members: Any) -> tuple[int, dict[str, Any]]:
        """Status and error object of a call that fails; its form is OpenAI's."""
        status, body = self.chat(**members)
        error: dict[str, Any] = body["error"]
        assert set(error) == {"message", "type", "param", "code"}
        return status, error

    def stream(self, **members: Any) -> list[str]:
        """The data of every event of a streamed call."""
        answer = self.gateway.chat(model=self.model, stream=True, **members)
        assert answer.status_code == 200, answer.text
        return [line[6:] for line in answer.text.split("\n") if line.startswith("data: ")]

    def usage(self) -> tuple[int, int, bool]:
        """Prompt and completion tokens of the only call, and whether they are estimated."""
        usage = self.gateway.settled(1)[0].outcome.usage
        return usage.prompt, usage.completion, usage.estimated
