"""Which targets a Responses call goes to, and what they get."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest

from gateway.api import response_call
from gateway.api.response_call import ResponseCall
from gateway.responses.forms import chat_form
from gateway.schemas.responses import parse_response
from gateway.tenancy.keys import Caller
from tests.support.clock import ManualClock
from tests.support.responses import ResponsesPlane, native_events
from tests.support.scripts import Sse, answer, chat_chunk
from tests.support.serve import headway
from tests.support.upstream import ScriptedUpstream

if TYPE_CHECKING:
    from gateway.api.calls import CallParts

FAILED = {"error": {"message": "down", "type": "server_error", "code": None}}


def test_records_and_classes(responses: ResponsesPlane) -> None:
    """The head tells class, target and tier; a flex call is elastic and says so."""
    with responses.running.client() as http:
        plain = http.post("/responses", json={"model": "m", "input": "x"})
        flex = http.post("/responses", json={"model": "m", "input": "x", "service_tier": "flex"})
        later = http.post("/responses", json={"model": "m", "input": "x", "background": True})
    assert (plain.headers["x-headway-class"], plain.headers["x-headway-target"]) == (
        "interactive",
        "up",
    )
    assert plain.json()["service_tier"] == "default"
    assert (flex.headers["x-headway-class"], flex.json()["service_tier"]) == ("elastic", "flex")
    assert later.headers["x-headway-class"] == "elastic"
    assert later.headers["x-headway-class-reason"] == "background"
    responses.upstream.wait(lambda: len(responses.upstream.calls()) == 3, 20)


@pytest.mark.parametrize("stream", [False, True])
def test_fallback_to_a_target_without_the_endpoint(responses: ResponsesPlane, stream: bool) -> None:
    """Before content a chat completion takes over; nothing of the first is seen."""
    failed = {"type": "response.failed", "response": {"error": {"message": "down"}}}
    script = Sse([native_events("x")[0], failed]) if stream else answer(FAILED, 500)
    responses.native.enqueue(script)
    got = responses.text(model="both", stream=stream)
    assert '"status":"completed"' in got
    assert "down" not in got
    assert got.count("event: response.created") == int(stream)
    assert responses.upstream.calls()[-1].path == "/v1/chat/completions"


def test_hosted_tools_go_to_targets_that_have_them(responses: ResponsesPlane) -> None:
    """The others are left out of the plan, even when that one fails."""
    asked = {"model": "both", "tools": [{"type": "web_search"}], "input": "look it up"}
    assert "1 items" in responses.text(**asked)
    responses.native.enqueue(answer(FAILED, 500))
    assert '"down"' in responses.text(**asked)
    assert not responses.upstream.calls("look it up")


@pytest.mark.parametrize("model", ["m", "n"])
def test_a_broken_stream_says_so_once(responses: ResponsesPlane, model: str) -> None:
    """One ``error`` event after content, and no clean end."""
    if model == "m":
        responses.upstream.on("break here", Sse([chat_chunk("he")], end="close"), times=1)
    else:
        responses.native.enqueue(Sse(native_events("he")[:5], end="close"))
    got = responses.text(model=model, stream=True, input="break here")
    assert got.count("event: error") == 1
    assert "response.completed" not in got
    assert got.rstrip().splitlines()[-1].startswith('data: {"type":"error"')


def test_a_conversation_returns_to_its_target(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    """Each turn goes where the first one went, which has the beginning in its cache."""
    other = ScriptedUpstream().start()
    targets = {
        name: {"base_url": server.url, "models": ["m"], "weight": 1}
        for name, server in (("one", upstream), ("two", other))
    }
    homes: set[frozenset[str]] = set()
    with headway(tmp_path, {"targets": targets}) as running, running.client() as http:
        for n in range(6):
            previous, went = None, set()
            for turn in range(3):
                body = {"model": "m", "input": f"{n} {turn}", "previous_response_id": previous}
                got = http.post("/responses", json=body)
                previous = got.json()["id"]
                went.add(got.headers["x-headway-target"])
            homes.add(frozenset(went))
    other.stop()
    assert homes == {frozenset({"one"}), frozenset({"two"})}


@pytest.mark.parametrize("items", [1, 300])
async def test_a_large_conversation_is_translated_beside_the_loop(
    items: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small one waits for ``begin``; what chat cannot do is said there, too."""
    threads: list[int] = []

    def noted(*given: Any, **how: Any) -> Any:
        threads.append(threading.get_ident())
        return chat_form(*given, **how)

    monkeypatch.setattr(response_call, "chat_form", noted)
    item = {"type": "message", "role": "user", "content": "x" * 1000}
    for tools in ([], [{"type": "web_search"}]):
        asked = parse_response(
            orjson.dumps({"model": "m", "input": [item] * items, "tools": tools})
        )
        parts = cast("CallParts", SimpleNamespace(clock=ManualClock(0)))
        caller = Caller("a", "k")
        await ResponseCall(parts, caller, asked, asked.input, "req_1").prepare()
    assert len(threads) == (0 if items == 1 else 2)
    assert threading.get_ident() not in threads
