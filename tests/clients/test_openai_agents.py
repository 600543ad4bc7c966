"""openai-agents, over chat completions and over responses, which are its default."""

import pytest

from tests.clients.conftest import Stage
from tests.support.scenes import NUMBER, REPORT

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PACKAGES = ("openai-agents==0.24.0",)
PROGRAM = """
import openai
from agents import (
    Agent, Runner, function_tool, set_default_openai_api,
    set_default_openai_client, set_tracing_disabled,
)
set_default_openai_api(os.environ["AGENTS_API"])
set_tracing_disabled(True)
def connect(key=KEY):
    client = openai.AsyncOpenAI(base_url=URL, api_key=key, max_retries=0)
    set_default_openai_client(client, use_for_tracing=False)
@function_tool
def get_weather(city: str) -> str:
    "The weather."
    return "fine"
def agent(model="m", **more):
    return Agent(name="a", model=model, **more)
async def kind(text, key=KEY, **more):
    connect(key)
    try:
        await Runner.run(agent(**more), text)
    except Exception as error:
        return type(error).__name__
async def main():
    connect()
    plain = await Runner.run(agent(), "one two three")
    streamed = Runner.run_streamed(agent(), "one two three")
    deltas = [
        event.data.delta async for event in streamed.stream_events()
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    weather = await Runner.run(agent(tools=[get_weather]), "WEATHER")
    number = await Runner.run(agent(output_type=Number), "NUMBER")
    slow = Runner.run_streamed(agent(), "SLOW")
    async for event in slow.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            break
    aborted = time.monotonic()
    slow.cancel()
    await asyncio.sleep(1.2)
    return {
        "same": plain.final_output == streamed.final_output == "".join(deltas),
        "usage": plain.context_wrapper.usage.total_tokens,
        "weather": weather.final_output, "number": number.final_output.model_dump(),
        "errors": [
            await kind("x", key="wrong"), await kind("x", model="unknown"), await kind("WRONG"),
            await kind("BUSY"), await kind("BROKEN"),
        ],
        "aborted": aborted,
    }
print(json.dumps(asyncio.run(main())))
"""


@pytest.mark.parametrize("api", ["chat_completions", "responses"])
def test_everything(stage: Stage, api: str) -> None:
    """Chat, stream, a run with a tool, an output type, error classes, abort."""
    found = stage.run("openai-agents", PACKAGES, PROGRAM, AGENTS_API=api)
    assert stage.left_after(found.pop("aborted")) < 1.0
    assert found == {
        "same": True,
        "usage": 19,
        "weather": REPORT,
        "number": NUMBER,
        "errors": [
            "AuthenticationError",
            "NotFoundError",
            "BadRequestError",
            "RateLimitError",
            "InternalServerError",
        ],
    }
