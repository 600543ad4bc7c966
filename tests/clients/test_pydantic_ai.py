"""pydantic-ai."""

import pytest

from tests.clients.conftest import Stage
from tests.support.scenes import NUMBER, REPORT

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PACKAGES = ("pydantic-ai-slim[openai]==2.68.0",)
PROGRAM = """
from openai import AsyncOpenAI
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
def agent(output=str, model="m", key=KEY, **more):
    client = AsyncOpenAI(base_url=URL, api_key=key, max_retries=0)
    provider = OpenAIProvider(openai_client=client)
    return Agent(OpenAIChatModel(model, provider=provider), output_type=output, **more)
def get_weather(city: str) -> str:
    "The weather."
    return "fine"
settings = {"max_tokens": 4}
async def status(text, **more):
    try:
        await agent(**more).run(text)
    except Exception as error:
        return getattr(error, "status_code", repr(error))
async def main():
    plain = await agent().run("one two three", model_settings=settings)
    async with agent().run_stream("one two three", model_settings=settings) as stream:
        streamed = await stream.get_output()
    numbers = [
        (await agent(output).run("NUMBER")).output.model_dump()
        for output in (Number, NativeOutput(Number))
    ]
    weather = await agent(tools=[get_weather]).run("WEATHER")
    async with agent().run_stream("SLOW") as slow:
        async for _ in slow.stream_text(delta=True, debounce_by=None):
            break
        aborted = time.monotonic()
        await slow.cancel() if hasattr(slow, "cancel") else None
    await asyncio.sleep(1.2)
    usage = plain.usage() if callable(plain.usage) else plain.usage
    return {
        "same": plain.output == streamed, "usage": usage.total_tokens,
        "numbers": numbers, "weather": weather.output,
        "errors": [
            await status("x", key="wrong"), await status("x", model="unknown"),
            await status("WRONG"), await status("BUSY"), await status("BROKEN"),
        ],
        "aborted": aborted,
    }
print(json.dumps(asyncio.run(main())))
"""


def test_everything(stage: Stage) -> None:
    """Chat, stream, tools, JSON schema as tool and as format, errors, abort."""
    found = stage.run("pydantic-ai", PACKAGES, PROGRAM)
    assert stage.left_after(found.pop("aborted")) < 1.0
    assert found == {
        "same": True,
        "usage": 7,
        "numbers": [NUMBER, NUMBER],
        "weather": REPORT,
        "errors": [401, 404, 400, 429, 500],
    }
