"""instructor: structured output in its modes."""

import pytest

from tests.clients.conftest import Stage
from tests.support.scenes import NUMBER

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PACKAGES = ("instructor==1.17.0", "openai==2.54.0")
PROGRAM = """
import instructor, openai
def client(mode=instructor.Mode.TOOLS, **more):
    return instructor.from_openai(openai.OpenAI(max_retries=0, **more), mode=mode)
def number(mode, text="NUMBER", **more):
    return client(mode, **more).create(
        model="m", messages=messages(text), response_model=Number, max_retries=0
    )
modes = (instructor.Mode.TOOLS, instructor.Mode.JSON, instructor.Mode.JSON_SCHEMA)
partial = list(
    client().create_partial(model="m", messages=messages("NUMBER"), response_model=Number)
)
def status(text, **more):
    try:
        number(instructor.Mode.TOOLS, text, **more)
    except Exception as error:
        while error is not None and not isinstance(error, openai.APIStatusError):
            error = error.__cause__ or getattr(error, "last_exception", None) or error.__context__
        return error and error.status_code
plain = client().chat.completions.create(
    model="m", messages=messages("one two three"), response_model=None, max_tokens=4
)
stream = client().create(model="m", messages=messages("SLOW"), response_model=None, stream=True)
while not next(iter(stream)).choices[0].delta.content:
    pass
aborted = time.monotonic()
stream.close()
time.sleep(1.2)
print(json.dumps({
    "numbers": [number(mode).model_dump() for mode in modes],
    "partial": partial[-1].model_dump(), "plain": plain.usage.total_tokens,
    "errors": [status("x", api_key="wrong"), status("WRONG"), status("BUSY"), status("BROKEN")],
    "aborted": aborted,
}))
"""


def test_everything(stage: Stage) -> None:
    """Tools, JSON, JSON schema, partial objects from a stream, errors, abort."""
    found = stage.run("instructor", PACKAGES, PROGRAM)
    assert stage.left_after(found.pop("aborted")) < 1.0
    assert found == {
        "numbers": [NUMBER] * 3,
        "partial": NUMBER,
        "plain": 7,
        "errors": [401, 400, 429, 500],
    }
