"""The judge of a round sees what it is there to see."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.checker import Verdict, judge
from tests.chaos.plan import BatchPlan, RoundPlan, round_plan
from tests.support.answers import Shape, plain_answer
from tests.support.batch import chat_line

_ROWS = (("a-0", "m", 2), ("a-1", "m", 3), ("a-2", "n", 1))
_PLAN = RoundPlan(0, False, (BatchPlan("a", "alpha", 0.0, _ROWS),), ())


def _answer(custom_id: str, model: str, tokens: int) -> dict[str, Any]:
    body = chat_line(custom_id, f"{custom_id} please", model=model, max_tokens=tokens)["body"]
    response = {"status_code": 200, "body": plain_answer(Shape(chat=True), body)}
    return {"custom_id": custom_id, "response": response, "error": None}


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


class Disk:
    """What a sound round leaves on disk, to be spoiled by a test."""

    def __init__(self) -> None:
        self.output = [_answer(*row) for row in _ROWS]
        self.error: list[dict[str, Any]] = []
        self.log = [{"row": c, "prompt": 2, "completion": n} for c, _, n in _ROWS]
        self.bill = {"m": [4, 5], "n": [2, 1]}
        self.listed = ["batch_1"]

    def verdict(self, folder: Path) -> Verdict:
        """What the judge says about it."""
        _write(folder / "a.output.jsonl", self.output)
        _write(folder / "a.error.jsonl", self.error)
        _write(folder / "upstream.jsonl", self.log)
        made = {"event": "ok", "op": "create", "batch": "a", "id": "batch_1"}
        listed = {"event": "ok", "op": "list", "ids": self.listed}
        _write(folder / "history.jsonl", [made, listed])
        rows = [
            {"lane": "batch", "tenant": "alpha", "model": model}
            | {"prompt_tokens": prompt, "completion_tokens": completion}
            for model, (prompt, completion) in self.bill.items()
        ]
        (folder / "usage.json").write_text(json.dumps({"rows": rows}))
        return judge(_PLAN, folder)


def _loses_a_row(disk: Disk) -> None:
    del disk.output[0]
    disk.bill["m"] = [2, 3]


def _delivers_twice(disk: Disk) -> None:
    disk.output.append(disk.output[2])
    disk.bill["n"] = [4, 2]


def _has_it_in_both_files(disk: Disk) -> None:
    disk.error.append({"custom_id": "a-1", "response": None, "error": {"code": "timeout"}})


def _knows_a_row_of_nobody(disk: Disk) -> None:
    disk.error.append({"custom_id": "b-7", "response": None, "error": {"code": "timeout"}})


def _answers_another_row(disk: Disk) -> None:
    disk.output[0]["response"]["body"]["choices"] = disk.output[1]["response"]["body"]["choices"]


def _invents_an_answer(disk: Disk) -> None:
    del disk.log[1]


def _runs_a_batch_of_nobody(disk: Disk) -> None:
    disk.listed.append("batch_2")


def _forgets_a_batch(disk: Disk) -> None:
    disk.listed.clear()


def _bills_too_much(disk: Disk) -> None:
    disk.bill["m"][1] += 3


def _bills_another_model(disk: Disk) -> None:
    disk.bill["x"] = disk.bill.pop("n")


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (_loses_a_row, {"lost": 1}),
        (_delivers_twice, {"twice": 1}),
        (_has_it_in_both_files, {"twice": 1}),
        (_knows_a_row_of_nobody, {"phantom": 1}),
        (_answers_another_row, {"phantom": 1}),
        (_invents_an_answer, {"phantom": 1}),
        (_runs_a_batch_of_nobody, {"phantom": 1}),
        (_forgets_a_batch, {"lost": 1}),
        (_bills_too_much, {"meter": 3}),
        (_bills_another_model, {"meter": 6}),
    ],
)
def test_what_is_wrong_is_counted(
    tmp_path: Path, spoil: Callable[[Disk], None], found: dict[str, int]
) -> None:
    """One thing wrong is one thing found, and the round is not sound."""
    disk = Disk()
    spoil(disk)
    verdict = disk.verdict(tmp_path)
    names = ("lost", "twice", "phantom", "meter")
    assert {name: getattr(verdict, name) for name in names} == dict.fromkeys(names, 0) | found
    assert not verdict.sound


def test_a_sound_round(tmp_path: Path) -> None:
    """Computed twice is no fault: it is counted as recomputed."""
    disk = Disk()
    disk.log.append(disk.log[1])
    verdict = disk.verdict(tmp_path)
    assert verdict.sound
    assert (verdict.rows, verdict.delivered, verdict.recomputed) == (3, 3, 5)


def test_a_seed_is_a_plan() -> None:
    """The same seed gives the same rounds, another seed others."""
    assert round_plan(7, 3, 500) == round_plan(7, 3, 500)
    assert round_plan(7, 3, 500) != round_plan(8, 3, 500)
