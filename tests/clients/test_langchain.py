"""langchain-openai."""

import pytest

from tests.clients.conftest import Stage
from tests.support.scenes import ARGUMENTS, NUMBER

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PACKAGES = ("langchain-openai==1.7.4",)
PROGRAM = """
import openai
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
def model(**more):
    return ChatOpenAI(**{"model": "m", "max_retries": 0, "base_url": URL, "api_key": KEY, **more})
chat = model(max_tokens=4)
plain = chat.invoke("one two three")
pieces = list(model(max_tokens=4, stream_usage=True).stream("one two three"))
@tool
def get_weather(city: str) -> str:
    "The weather."
    return "fine"
tools = model().bind_tools([get_weather])
whole = None
for piece in tools.stream("WEATHER"):
    whole = piece if whole is None else whole + piece
def is_a(kind, call):
    try:
        call()
    except Exception as error:
        return isinstance(error, kind)
    return False
async def leave():
    stream = model().astream("SLOW")
    async for piece in stream:
        if piece.content:
            break
    aborted = time.monotonic()
    await stream.aclose()
    await asyncio.sleep(1.2)
    return aborted
aborted = asyncio.run(leave())
vectors = OpenAIEmbeddings(model="m", base_url=URL, api_key=KEY, check_embedding_ctx_length=False)
print(json.dumps({
    "same": plain.content == "".join(piece.content for piece in pieces),
    "usage": [plain.usage_metadata["total_tokens"]]
    + [piece.usage_metadata["total_tokens"] for piece in pieces if piece.usage_metadata],
    "tool": [tools.invoke("WEATHER").tool_calls[0]["args"], whole.tool_calls[0]["args"]],
    "number": [
        model().with_structured_output(Number, method=way).invoke("NUMBER").model_dump()
        for way in ("json_schema", "function_calling")
    ],
    "errors": [
        is_a(openai.AuthenticationError, lambda: model(api_key="wrong").invoke("x")),
        is_a(openai.NotFoundError, lambda: model(model="unknown").invoke("x")),
        is_a(openai.BadRequestError, lambda: model().invoke("WRONG")),
        is_a(openai.RateLimitError, lambda: model().invoke("BUSY")),
        is_a(openai.InternalServerError, lambda: model().invoke("BROKEN")),
    ],
    "floats": len(vectors.embed_query("x")), "aborted": aborted,
}))
"""


def test_everything(stage: Stage) -> None:
    """Chat, stream, tools, JSON schema, error classes, embeddings, abort."""
    found = stage.run("langchain", PACKAGES, PROGRAM)
    assert stage.left_after(found.pop("aborted")) < 1.0
    assert found == {
        "same": True,
        "usage": [7, 7],
        "tool": [ARGUMENTS, ARGUMENTS],
        "number": [NUMBER, NUMBER],
        "errors": [True] * 5,
        "floats": 8,
    }
