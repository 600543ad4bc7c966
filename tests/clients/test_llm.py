"""llm, the command and the library."""

import pytest

from tests.clients.conftest import Stage
from tests.support.scenes import NUMBER, REPORT

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PACKAGES = ("llm==0.36",)
MODELS = """
- model_id: headway
  model_name: m
  api_base: {url}
  api_key_name: headway
  supports_tools: true
  supports_schema: true
"""
PROGRAM = """
import signal, subprocess, sys
import llm
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a job in the background starts with it ignored
model = llm.get_model("headway")
def ask(text, **more):
    return model.prompt(text, **{"key": KEY, **more})
def get_weather(city: str) -> str:
    "The weather."
    return "fine"
plain = ask("one two three", stream=False, max_tokens=4)
streamed = ask("one two three", max_tokens=4)
pieces = list(streamed)
chain = model.chain("WEATHER", tools=[get_weather], key=KEY)
command = [sys.executable, "-m", "llm", "-m", "headway", "--key", KEY, "-n"]
said = subprocess.run(
    [*command, "-o", "max_tokens", "4", "one two three"], capture_output=True, text=True, check=True
)
slow = subprocess.Popen([*command, "SLOW"], stdout=subprocess.PIPE)
slow.stdout.read(1)
aborted = time.monotonic()
slow.send_signal(signal.SIGINT)
slow.wait()
print(json.dumps({
    "same": plain.text() == "".join(pieces) == said.stdout.strip(), "pieces": len(pieces) > 1,
    "usage": [plain.usage().output, streamed.usage().output], "chain": chain.text(),
    "number": json.loads(ask("NUMBER", schema=Number).text()),
    "errors": [
        kind_of(lambda: ask("x", key="wrong").text()), kind_of(lambda: ask("WRONG").text()),
    ],
    "aborted": aborted,
}))
"""


def test_everything(stage: Stage) -> None:
    """Chat, stream, a chain of tool calls, JSON schema, errors; the command, interrupted."""
    (stage.folder / "extra-openai-models.yaml").write_text(
        MODELS.format(url=stage.running.base_url)
    )
    found = stage.run("llm", PACKAGES, PROGRAM, LLM_USER_PATH=str(stage.folder))
    assert stage.left_after(found.pop("aborted")) < 1.0
    assert found == {
        "same": True,
        "pieces": True,
        "usage": [4, 4],
        "chain": REPORT,
        "number": NUMBER,
        "errors": ["AuthenticationError", "BadRequestError"],
    }
