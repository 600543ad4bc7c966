"""litellm, as a client."""

import pytest

from tests.clients.conftest import Stage
from tests.support.scenes import ARGUMENTS, NUMBER

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PACKAGES = ("litellm==1.110.2",)
PROGRAM = """
import litellm
litellm.suppress_debug_info = True
litellm.telemetry = False
def ask(text, **more):
    known = {"model": "openai/m", "api_base": URL, "api_key": KEY, "max_retries": 0}
    return litellm.completion(messages=messages(text), **{**known, **more})
plain = ask("one two three", max_tokens=4)
usage = {"include_usage": True}
chunks = list(ask("one two three", max_tokens=4, stream=True, stream_options=usage))
rebuilt = litellm.stream_chunk_builder(chunks)
function = {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}
tools = [{"type": "function", "function": function}]
call = ask("WEATHER", tools=tools).choices[0].message.tool_calls[0].function
streamed = litellm.stream_chunk_builder(list(ask("WEATHER", tools=tools, stream=True)))
number = ask("NUMBER", response_format=Number).choices[0].message.content
async def leave():
    stream = await litellm.acompletion(
        model="openai/m", api_base=URL, api_key=KEY, messages=messages("SLOW"), stream=True
    )
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    aborted = time.monotonic()
    await stream.completion_stream.close()
    await asyncio.sleep(1.2)
    return aborted
print(json.dumps({
    "same": plain.choices[0].message.content == rebuilt.choices[0].message.content,
    "usage": [plain.usage.total_tokens, rebuilt.usage.total_tokens],
    "tool": [
        json.loads(call.arguments),
        json.loads(streamed.choices[0].message.tool_calls[0].function.arguments),
    ],
    "number": json.loads(number),
    "errors": [
        kind_of(lambda: ask("x", api_key="wrong")), kind_of(lambda: ask("x", model="openai/no")),
        kind_of(lambda: ask("WRONG")), kind_of(lambda: ask("BUSY")), kind_of(lambda: ask("BROKEN")),
    ],
    "floats": len(litellm.embedding(model="openai/m", input=["x"], api_base=URL, api_key=KEY)
        .data[0]["embedding"]),
    "aborted": asyncio.run(leave()),
}))
"""


def test_everything(stage: Stage) -> None:
    """Chat, stream, tools, JSON schema, error classes, embeddings, abort."""
    found = stage.run("litellm", PACKAGES, PROGRAM)
    assert stage.left_after(found.pop("aborted")) < 1.0
    assert found == {
        "same": True,
        "usage": [7, 7],
        "tool": [ARGUMENTS, ARGUMENTS],
        "number": NUMBER,
        "errors": [
            "AuthenticationError",
            "NotFoundError",
            "BadRequestError",
            "RateLimitError",
            "InternalServerError",
        ],
        "floats": 8,
    }
