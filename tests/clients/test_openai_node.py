"""The official npm package."""

import pytest

from tests.clients.conftest import Stage
from tests.support.node import node_modules
from tests.support.scenes import ARGUMENTS, NUMBER

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PROGRAM = """
import OpenAI from "openai";
const client = new OpenAI({ maxRetries: 0 });
const ask = (content, more = {}) => client.chat.completions.create({
  model: "m", messages: [{ role: "user", content }], ...more,
});
const kindOf = async (call) => {
  try { await call(); } catch (error) { return error.constructor.name; }
  return "none";
};
const plain = await ask("one two three", { max_tokens: 4 });
let text = "", usage;
for await (const chunk of await ask("one two three", {
  max_tokens: 4, stream: true, stream_options: { include_usage: true },
})) {
  text += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}
const tools = [{ type: "function", function: { name: "get_weather", parameters: {} } }];
const call = (await ask("WEATHER", { tools })).choices[0].message.tool_calls[0].function;
const streamed = await client.chat.completions.stream({
  model: "m", messages: [{ role: "user", content: "WEATHER" }], tools,
}).finalChatCompletion();
const schema = { name: "Number", strict: true, schema: { type: "object", properties: {} } };
const number = await client.chat.completions.parse({
  model: "m", messages: [{ role: "user", content: "NUMBER" }],
  response_format: { type: "json_schema", json_schema: schema },
});
const slow = await ask("SLOW", { stream: true });
for await (const chunk of slow) if (chunk.choices[0].delta.content) break;
const aborted = Number(process.hrtime.bigint()) / 1e9;
slow.controller.abort();
await new Promise((done) => setTimeout(done, 1200));
const stranger = new OpenAI({ apiKey: "wrong", maxRetries: 0 });
console.log(JSON.stringify({
  same: plain.choices[0].message.content === text, usage: usage.total_tokens,
  tool: [call.name, JSON.parse(call.arguments),
    JSON.parse(streamed.choices[0].message.tool_calls[0].function.arguments)],
  number: number.choices[0].message.parsed ?? JSON.parse(number.choices[0].message.content),
  errors: [
    await kindOf(() => stranger.models.list()),
    await kindOf(() => ask("x", { model: "unknown" })),
    await kindOf(() => ask("WRONG")), await kindOf(() => ask("BUSY")),
    await kindOf(() => ask("BROKEN")),
  ],
  models: (await client.models.list()).data.map((model) => model.id), aborted,
}));
"""


def test_everything(stage: Stage, node: str) -> None:
    """Chat, stream, tools, JSON schema, error classes, models, abort."""
    (stage.folder / "node_modules").symlink_to(node_modules())
    (stage.folder / "client.mjs").write_text(PROGRAM)
    found = stage.command([node, "client.mjs"])
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
        ],
        "models": ["m"],
    }
