"""Judges a round by what lies on disk: history, downloads, the model server's log, the bill."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tests.chaos.history import read_lines
from tests.chaos.plan import BatchPlan, RoundPlan
from tests.support.answers import digest_of
from tests.support.batch import chat_line

_Tokens = tuple[int, int]


@dataclass
class Verdict:
    """Of one round, or summed over rounds.

    ``lost`` rows are in no file, ``twice`` in more than one line, ``phantom`` lines or batches
    nobody asked for, or answers that are not the row's or that the model server never gave.
    ``meter`` is the difference in tokens between bill and delivered lines. ``recomputed`` tokens
    were computed and not delivered. ``given_up`` rows ended with an error line.
    """

    rows: int = 0
    delivered: int = 0
    given_up: int = 0
    cancelled: int = 0
    lost: int = 0
    twice: int = 0
    phantom: int = 0
    meter: int = 0
    recomputed: int = 0
    tokens: int = 0
    codes: Counter[str] = field(default_factory=Counter)

    @property
    def sound(self) -> bool:
        """Nothing lost, nothing twice, nothing from nowhere, and the bill is right."""
        return not (self.lost or self.twice or self.phantom or self.meter)

    def __add__(self, other: "Verdict") -> "Verdict":
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return Verdict(**sums)


def judge(plan: RoundPlan, folder: Path) -> Verdict:
    """The verdict on the round that was run in ``folder``."""
    verdict = Verdict(rows=plan.rows)
    log = list(read_lines(folder / "upstream.jsonl"))
    answered = Counter((note["row"], note["prompt"], note["completion"]) for note in log)
    billed: dict[tuple[str, str], _Tokens] = {}
    for batch in plan.batches:
        _judge_batch(batch, folder, verdict, answered, billed)
    _judge_batches(folder, verdict)
    verdict.meter = _difference(billed, json.loads((folder / "usage.json").read_text()))
    computed = sum(note["prompt"] + note["completion"] for note in log)
    verdict.tokens = sum(map(sum, billed.values()))
    verdict.recomputed = computed - verdict.tokens
    return verdict


def _judge_batch(
    batch: BatchPlan,
    folder: Path,
    verdict: Verdict,
    answered: Counter[tuple[str, int, int]],
    billed: dict[tuple[str, str], _Tokens],
) -> None:
    wanted = {custom_id: (model, tokens) for custom_id, model, tokens in batch.rows}
    seen: Counter[str] = Counter()
    for line in _lines(folder, batch, "output"):
        seen[line["custom_id"]] += 1
        model, tokens = wanted.get(line["custom_id"], ("", 0))
        usage = line["response"]["body"]["usage"]
        prompt, completion = usage["prompt_tokens"], usage["completion_tokens"]
        verdict.delivered += 1
        known = answered[line["custom_id"], prompt, completion] > 0
        if not (known and _is_answer(line, model, tokens)):
            verdict.phantom += 1
        sums = billed.get((batch.tenant, model), (0, 0))
        billed[batch.tenant, model] = (sums[0] + prompt, sums[1] + completion)
    for line in _lines(folder, batch, "error"):
        seen[line["custom_id"]] += 1
        code = (line["error"] or {}).get("code") or str(line["response"]["status_code"])
        verdict.codes[code] += 1
        if code == "batch_cancelled" and batch.cancelled:
            verdict.cancelled += 1
        else:
            verdict.given_up += 1
    verdict.lost += len(wanted.keys() - seen.keys())
    verdict.phantom += len(seen.keys() - wanted.keys())
    verdict.twice += sum(times - 1 for times in seen.values())


def _is_answer(line: dict[str, Any], model: str, tokens: int) -> bool:
    """Whether the text starts with the digest of the very prompt that was sent."""
    custom_id = line["custom_id"]
    body = chat_line(custom_id, f"{custom_id} please", model=model, max_tokens=tokens)["body"]
    said = line["response"]["body"]["choices"][0]["message"]["content"]
    return bool(said.split(" ")[0] == digest_of(body["messages"]))


def _judge_batches(folder: Path, verdict: Verdict) -> None:
    """One batch id per batch that was asked for, and all of them are listed."""
    made: dict[str, set[str]] = {}
    listed: set[str] = set()
    for event in read_lines(folder / "history.jsonl"):
        if event["event"] == "ok" and event["op"] == "create":
            made.setdefault(event["batch"], set()).add(event["id"])
        elif event["op"] == "list":
            listed.update(event["ids"])
    known = {batch_id for ids in made.values() for batch_id in ids}
    verdict.twice += sum(len(ids) - 1 for ids in made.values())
    verdict.phantom += len(listed - known)
    verdict.lost += len(known - listed)


def _difference(billed: dict[tuple[str, str], _Tokens], bill: dict[str, Any]) -> int:
    metered: dict[tuple[str, str], _Tokens] = {}
    for row in bill["rows"]:
        if row["lane"] == "batch":
            tokens = (row["prompt_tokens"], row["completion_tokens"])
            metered[row["tenant"], row["model"]] = tokens
    return sum(
        abs(one - other)
        for group in metered.keys() | billed.keys()
        for one, other in zip(metered.get(group, (0, 0)), billed.get(group, (0, 0)), strict=True)
    )


def _lines(folder: Path, batch: BatchPlan, kind: str) -> Iterator[dict[str, Any]]:
    yield from read_lines(folder / f"{batch.name}.{kind}.jsonl")
