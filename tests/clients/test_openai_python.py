"""The official Python package, its newest version and 1.x."""

import pytest

from tests.clients.conftest import Stage
from tests.support.scenes import ARGUMENTS, NUMBER

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

VERSIONS = ["openai==3.51.0", "openai==1.109.1"]
PROGRAM = """
import openai
client = openai.OpenAI(max_retries=0)
create = client.chat.completions.create
def ask(text, **more):
    return create(model="m", messages=messages(text), **more)
plain = ask("one two three", max_tokens=4)
stream = ask("one two three", max_tokens=4, stream=True, stream_options={"include_usage": True})
text, usage = "", None
for chunk in stream:
    text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
    usage = chunk.usage or usage
tool = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
call = ask("WEATHER", tools=[tool]).choices[0].message.tool_calls[0].function
pieces = [chunk.choices[0].delta.tool_calls for chunk in ask("WEATHER", tools=[tool], stream=True)]
streamed = "".join(part[0].function.arguments or "" for part in pieces if part)
parse = client.chat.completions.parse
number = parse(model="m", messages=messages("NUMBER"), response_format=Number)
slow = ask("SLOW", stream=True)
while not next(slow).choices[0].delta.content:
    pass
aborted = time.monotonic()
slow.close()
wrong_key = openai.OpenAI(api_key="wrong", max_retries=0)
raw = client.chat.completions.with_raw_response.create(model="m", messages=messages("x"))
async def many():
    async with openai.AsyncOpenAI(max_retries=0) as one:
        calls = [
            one.chat.completions.create(model="m", messages=messages(f"Say {n}"), max_tokens=2)
            for n in range(32)
        ]
        return len({answer.choices[0].message.content for answer in await asyncio.gather(*calls)})
print(json.dumps({
    "same": plain.choices[0].message.content == text, "usage": usage.total_tokens,
    "tool": [call.name, json.loads(call.arguments), json.loads(streamed)],
    "number": number.choices[0].message.parsed.model_dump(),
    "errors": [
        kind_of(lambda: wrong_key.models.list()),
        kind_of(lambda: create(model="unknown", messages=messages("x"))),
        kind_of(lambda: ask("WRONG")), kind_of(lambda: ask("BUSY")), kind_of(lambda: ask("BROKEN")),
        kind_of(lambda: client.with_options(timeout=0.3).embeddings.create(model="no", input="x")),
    ],
    "target": raw.headers["x-headway-target"], "request": bool(raw.parse()._request_id),
    "models": [model.id for model in client.models.list()],
    "floats": len(client.embeddings.create(model="m", input="x").data[0].embedding),
    "many": asyncio.run(many()), "aborted": aborted,
}))
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_everything(stage: Stage, version: str) -> None:
    """Chat, stream, tools, JSON schema, error classes, models, embeddings, abort, 32 at once."""
    found = stage.run(version.replace("==", "-"), (version,), PROGRAM)
    assert stage.left_after(found.pop("aborted")) < 1.0
    assert found == {
        "same": True,
        "usage": 7,
        "tool": ["get_weather", ARGUMENTS, ARGUMENTS],
        "number": NUMBER,
        "errors": [
            "AuthenticationError",
            "NotFoundError",
            "BadRequestError",
            "RateLimitError",
            "InternalServerError",
            "NotFoundError",
        ],
        "target": "up",
        "request": True,
        "models": ["m"],
        "floats": 8,
        "many": 32,
    }
