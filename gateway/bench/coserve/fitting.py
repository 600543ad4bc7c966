"""A load that suits the servers: measured on them, not guessed."""

from dataclasses import dataclass, replace

import aiohttp

from gateway.bench.coserve.arms import Scene
from gateway.bench.coserve.figures import Figures
from gateway.bench.coserve.live_host import Filler
from gateway.bench.coserve.record import Record
from gateway.bench.coserve.slo import Slo
from gateway.core.errors import BenchmarkFailed

_PROBE_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Fitting:
    """What of a scene is measured first; None: it stays as it is.

    Interactive calls come at the rate that takes ``share`` of the tokens that the servers do of
    offline work alone; the SLO is ``slo_times`` the 95th percentiles of interactive calls alone.
    """

    share: float | None = None
    slo_times: float | None = None

    def after_offline(self, scene: Scene, offline: Figures) -> Scene:
        """With the rate, now that offline work has run alone."""
        if self.share is None:
            return scene
        rate = self.share * offline.offline_tokens / (scene.chat.prompt + scene.chat.output)
        return replace(scene, rate=rate)

    def after_alone(self, scene: Scene, record: Record) -> Scene:
        """With the SLO, now that interactive calls have run alone."""
        calls = [call for call in scene.span.judged(record.calls) if call.tokens]
        if self.slo_times is None or not calls:
            return scene
        return replace(scene, slo=Slo.of_alone(calls, self.slo_times))


#: Nothing is measured first.
AS_TOLD = Fitting()


async def template_tokens(session: aiohttp.ClientSession, url: str, model: str) -> int:
    """Tokens that a server puts around a prompt; 0 where it does not count them.

    Raises BenchmarkFailed when it does not answer, or refuses.
    """
    prompt = Filler(0).text(_PROBE_TOKENS)
    messages = [{"role": "user", "content": prompt}]
    body = {"model": model, "messages": messages, "max_tokens": 1}
    try:
        async with session.post(f"{url}/chat/completions", json=body) as answer:
            text = await answer.text()
            if answer.status >= 400:  # noqa: PLR2004 - any refusal
                raise BenchmarkFailed(f"{url}: {text[:300]}")
            usage = (await answer.json()).get("usage") or {}
    except (aiohttp.ClientError, ValueError) as error:
        raise BenchmarkFailed(f"{url} does not answer: {error}") from None
    return max(0, int(usage.get("prompt_tokens", 0)) - _PROBE_TOKENS)
