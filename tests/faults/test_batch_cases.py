"""Cases of the Batch API against a real gateway, dispatcher and queue server."""

import json
import threading
from collections.abc import Callable

import pytest

from tests.support.batch import BatchClient, chat_line, ids
from tests.support.meter import batch_bill
from tests.support.scripts import after, answer, error, once, raw
from tests.support.serve import RunningHeadway, wait_for
from tests.support.upstream import ScriptedUpstream

_PLAIN = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_760_000_000,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "made by UP"},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6},
}


def test_bat_01_every_line_accounted_for(batches: BatchClient, up: ScriptedUpstream) -> None:
    """15 good, 5 refused by UP, 5 without a connection: each id in exactly one file."""
    up.on("bad line", error(400, "no", kind="invalid_request_error"))
    lines = [chat_line(f"good-{n}", "fine") for n in range(15)]
    lines += [chat_line(f"bad-{n}", "bad line") for n in range(5)]
    lines += [chat_line(f"gone-{n}", "fine", model="gone") for n in range(5)]
    batch = batches.ended(batches.start(lines)["id"])
    output, errors = batches.output(batch), batches.errors(batch)
    assert batch["status"] == "completed"
    assert ids(output) == sorted(f"good-{n}" for n in range(15))
    assert ids(errors) == sorted(f"{kind}-{n}" for kind in ("bad", "gone") for n in range(5))
    assert batch["request_counts"] == {"completed": 15, "failed": 10, "total": 25}


def test_bat_13_all_lines_fail(batches: BatchClient, up: ScriptedUpstream) -> None:
    """completed, no output file, an error file, and the same answer each time."""
    up.on("m", error(400, "no"))
    batch_id = batches.start(chat_line(str(n), "x") for n in range(9))["id"]
    batch = batches.ended(batch_id)
    assert batch["status"] == "completed"
    assert batch["output_file_id"] is None
    assert len(batches.errors(batch)) == 9
    assert batch["request_counts"] == {"completed": 0, "failed": 9, "total": 9}
    assert all(batches.get(batch_id) == batch for _ in range(20))


def test_bat_14_and_28_no_line_fails(batches: BatchClient, up: ScriptedUpstream) -> None:
    """The error file is null; the answers are UP's own, each with its request id."""
    up.on("m", answer(_PLAIN))
    batch = batches.ended(batches.start(chat_line(str(n), "the prompt") for n in range(2))["id"])
    assert batch["error_file_id"] is None
    assert batch["request_counts"] == {"completed": 2, "failed": 0, "total": 2}
    responses = [line["response"] for line in batches.output(batch)]
    assert all(r["body"]["object"] == "chat.completion" for r in responses)
    texts = {r["body"]["choices"][0]["message"]["content"] for r in responses}
    assert texts == {"made by UP"}
    assert len({r["request_id"] for r in responses}) == 2


def test_bat_15_what_an_error_line_holds(batches: BatchClient, up: ScriptedUpstream) -> None:
    """A status comes with UP's body; without an answer there is a code and no response."""
    up.on("bad line", error(400, "not like this", kind="invalid_request_error", code="odd"))
    up.on("slow", after(5.0, answer(_PLAIN)))
    lines = [
        chat_line("bad", "bad line"),
        chat_line("gone", "x", model="gone"),
        chat_line("late", "x", model="slow"),
    ]
    batch = batches.ended(batches.start(lines)["id"])
    found = {line["custom_id"]: line for line in batches.errors(batch)}
    assert found["bad"]["response"]["status_code"] == 400
    assert found["bad"]["response"]["body"]["error"]["message"] == "not like this"
    assert found["bad"]["error"] is None
    for custom_id, code in (("gone", "connection_error"), ("late", "timeout")):
        assert found[custom_id]["response"] is None
        assert found[custom_id]["error"]["code"] == code


def test_bat_16_html_instead_of_json(batches: BatchClient, up: ScriptedUpstream) -> None:
    """A 502 with a page of 5 kB ends as a JSON line with status 502 and a short message."""
    page = b"<html><body>Bad gateway here" + b"." * 5000 + b"</body></html>"
    up.on("m", raw(page, 502, headers={"content-type": "text/html"}))
    batch = batches.ended(batches.start([chat_line("1", "x")])["id"])
    [line] = batches.errors(batch)
    assert line["response"]["status_code"] == 502
    message = line["response"]["body"]["error"]["message"]
    assert message.startswith("<html><body>Bad gateway here")
    assert len(message.encode()) <= 1024


def test_met_09_batch_totals(
    batches: BatchClient, up: ScriptedUpstream, running: RunningHeadway
) -> None:
    """The batch's usage, its counts and the bill speak of the lines that were answered alone."""
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    up.on("bad line", error(400, "no"))
    up.on("m", answer({**_PLAIN, "usage": usage}))
    before = batch_bill(running)
    lines = [chat_line("1", "x"), chat_line("2", "x"), chat_line("bad", "bad line")]
    batch = batches.ended(batches.start([*lines, chat_line("gone", "x", model="gone")])["id"])
    assert batch["request_counts"] == {"completed": 2, "failed": 2, "total": 4}
    used = batch["usage"]
    assert (used["input_tokens"], used["output_tokens"], used["total_tokens"]) == (20, 10, 30)
    assert used["input_tokens_details"] == {"cached_tokens": 4}
    assert used["output_tokens_details"] == {"reasoning_tokens": 6}
    after_it = batch_bill(running)
    figures = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
    assert [after_it[name] - before[name] for name in figures] == [20, 10, 4, 6]


def test_bat_17_order_does_not_matter(batches: BatchClient, up: ScriptedUpstream) -> None:
    """UP answers late lines first; each id still has its own answer."""
    for number in range(50):
        said = json.loads(json.dumps(_PLAIN))
        said["choices"][0]["message"]["content"] = str(number)
        pause = 0.1 * (3 - number % 4)
        up.on(f'"say {number}"', after(pause, answer(said)))
    batch = batches.ended(batches.start(chat_line(str(n), f"say {n}") for n in range(50))["id"])
    output = batches.output(batch)
    assert len(output) == 50
    for line in output:
        content = line["response"]["body"]["choices"][0]["message"]["content"]
        assert content == line["custom_id"]


def test_bat_27_one_huge_line(batches: BatchClient, up: ScriptedUpstream) -> None:
    """Line 2 takes until the 29 others are done, however long that is."""
    rest = threading.Event()
    up.on("huge", once(rest.is_set, answer(_PLAIN)))
    up.on("m", after(0.1, answer(_PLAIN)))
    lines = [chat_line(str(n), "huge" if n == 2 else "small") for n in range(30)]
    batch_id = batches.start(lines)["id"]
    wait_for(lambda: batches.done(batch_id) == 29, 20, "the others")
    rest.set()
    batch = batches.ended(batch_id)
    assert batch["request_counts"] == {"completed": 30, "failed": 0, "total": 30}


def test_bat_24_input_file_deleted(batches: BatchClient, up: ScriptedUpstream) -> None:
    """The batch still completes and its results can be read."""
    up.on("m", after(0.3, answer(_PLAIN)))
    batch = batches.start(chat_line(str(n), "x") for n in range(8))
    with batches.running.client() as client:
        assert client.delete(f"/files/{batch['input_file_id']}").status_code in {200, 409}
    batch = batches.ended(batch["id"])
    assert batch["status"] == "completed"
    assert len(batches.output(batch)) == 8


def test_bat_02_cancel_while_running(batches: BatchClient, up: ScriptedUpstream) -> None:
    """The finished lines stay, the others are cancelled, and UP is left within 3 s."""
    up.on("fast", answer(_PLAIN))
    up.on("lazy", after(30.0, answer(_PLAIN)))
    lines = [chat_line(f"fast-{n}", "fast") for n in range(5)]
    lines += [chat_line(f"lazy-{n}", "lazy") for n in range(20)]
    batch_id = batches.start(lines)["id"]
    up.wait(lambda: batches.done(batch_id) == 5 and len(up.calls("lazy")) >= 4, 10)
    assert batches.cancel(batch_id)["status"] in {"cancelling", "cancelled"}
    seen = len(up.calls())
    up.wait(lambda: all(not call.open for call in up.calls("lazy")), 3)
    batch = batches.ended(batch_id)
    assert batch["status"] == "cancelled"
    assert ids(batches.output(batch)) == [f"fast-{n}" for n in range(5)]
    errors = batches.errors(batch)
    assert len(errors) == 20
    assert {line["error"]["code"] for line in errors} == {"batch_cancelled"}
    assert batch["request_counts"] == {"completed": 5, "failed": 20, "total": 25}
    assert len(up.calls()) == seen


def test_bat_18_expiry(batches: BatchClient, up: ScriptedUpstream, running: RunningHeadway) -> None:
    """Scaled: a window of 4 s in which UP answers 1 of 10."""
    up.on("fast", answer(_PLAIN))
    up.on("lazy", after(30.0, answer(_PLAIN)))
    lines = [chat_line("0", "fast"), *(chat_line(str(n), "lazy") for n in range(1, 10))]
    batch = batches.ended(batches.start(lines, completion_window="4s")["id"])
    assert batch["status"] == "expired"
    assert ids(batches.output(batch)) == ["0"]
    assert {line["error"]["code"] for line in batches.errors(batch)} == {"batch_expired"}
    assert batch["request_counts"] == {"completed": 1, "failed": 9, "total": 10}


_Spoil = Callable[[list[str]], list[str]]
_FAULTY: dict[str, tuple[int | None, _Spoil]] = {
    "invalid_json_line": (3, lambda lines: [*lines[:2], "{nonsense", *lines[3:]]),
    "missing_required_parameter": (2, lambda lines: [lines[0], _without("custom_id", lines[1])]),
    "url": (1, lambda lines: [lines[0].replace("/v1/chat/completions", "/v1/embeddings")]),
    "method": (1, lambda lines: [lines[0].replace("POST", "GET")]),
    "empty_file": (None, lambda lines: []),
    "duplicate_custom_id": (5, lambda lines: [*lines[:4], lines[1]]),
}


def _without(member: str, line: str) -> str:
    return json.dumps({name: value for name, value in json.loads(line).items() if name != member})


@pytest.mark.parametrize("fault", _FAULTY)
def test_bat_10_and_09_faulty_input(batches: BatchClient, up: ScriptedUpstream, fault: str) -> None:
    """Validating at first, then failed with code, line, message and param; UP gets nothing."""
    line, spoil = _FAULTY[fault]
    lines = spoil([json.dumps(chat_line(str(n), "x")) for n in range(1, 7)])
    wanted = {
        "input_file_id": batches.upload("".join(f"{text}\n" for text in lines).encode())["id"],
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    }
    with batches.running.client() as client:
        made = client.post("/batches", json=wanted)
    assert made.status_code == 200
    assert made.json()["status"] in {"validating", "failed"}
    batch = batches.ended(made.json()["id"], 10)
    assert batch["status"] == "failed"
    found = batch["errors"]["data"][0]
    assert found.keys() >= {"code", "line", "message", "param"}
    assert found["line"] == line
    assert fault in {found["code"], found["param"]}
    if fault == "duplicate_custom_id":
        assert "2" in found["message"]
    assert not up.calls()


def test_bat_22_and_23_line_ends(batches: BatchClient, up: ScriptedUpstream) -> None:
    """BOM, CRLF, blank lines and odd separators, in the input as in an answer, change nothing."""
    odd = "a\u2028b\u2029c\u0085d\u000be"
    said = json.loads(json.dumps(_PLAIN))
    said["choices"][0]["message"]["content"] = f"first\n{odd}"
    up.on("m", answer(said))
    # json writes a VT as an escape, which is its only form in JSON, and the others as they are
    lines = [
        json.dumps(chat_line(str(n), f"{n} {odd}"), ensure_ascii=False).encode() for n in range(4)
    ]
    content = b"\xef\xbb\xbf" + b"\r\n".join(lines[:2]) + b"\n\n" + b"\n".join(lines[2:])
    wanted = {
        "input_file_id": batches.upload(content)["id"],
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    }
    with batches.running.client() as client:
        batch = batches.ended(client.post("/batches", json=wanted).json()["id"])
        assert batch["request_counts"] == {"completed": 4, "failed": 0, "total": 4}
        output = client.get(f"/files/{batch['output_file_id']}/content").content
    sent = sorted(call.json["messages"][0]["content"] for call in up.calls())
    assert sent == [f"{n} {odd}" for n in range(4)]
    assert output.endswith(b"\n")
    parsed = [json.loads(line) for line in output[:-1].split(b"\n")]
    assert ids(parsed) == ["0", "1", "2", "3"]
    texts = {p["response"]["body"]["choices"][0]["message"]["content"] for p in parsed}
    assert texts == {f"first\n{odd}"}
