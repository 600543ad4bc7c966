"""One offline batch from upload to checked output, through the official client."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from openai import AsyncOpenAI
from openai.types import Batch

from gateway.bench.corpus import Prompt
from gateway.core.errors import BenchmarkFailed
from gateway.core.usage import Usage

ENDPOINT: Final = "/v1/chat/completions"
POLL_SECONDS = 0.25
ENDED = {"completed", "failed", "expired", "cancelled"}


@dataclass(frozen=True, slots=True)
class BatchResult:
    """A finished batch: ``rows`` requests sent, ``answers`` good lines received.

    Times are loop seconds; ``usage`` is the sum over the output lines.
    """

    id: str
    rows: int
    answers: int
    started_at: float
    ended_at: float
    usage: Usage
    sample: str

    @property
    def seconds(self) -> float:
        """From creation to the answer that says completed."""
        return self.ended_at - self.started_at

    @property
    def tokens_per_second(self) -> float:
        """Aggregate output speed, everything included."""
        return self.usage.completion / self.seconds


def input_file(prompts: Sequence[Prompt], model: str, max_tokens: int) -> bytes:
    """The JSONL to upload; ``custom_id`` is the prompt's name."""
    lines = [
        {
            "custom_id": prompt.name,
            "method": "POST",
            "url": ENDPOINT,
            "body": prompt.body(model, max_tokens),
        }
        for prompt in prompts
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


async def run_batch(
    client: AsyncOpenAI, content: bytes, on_progress: Callable[[Batch], None]
) -> BatchResult:
    """Upload, create, poll, download, check line by line.

    ``on_progress`` gets each answer of the poll. Raises BenchmarkFailed when the batch does not
    complete, or when its output is not one good line for each ``custom_id``.
    """
    now = asyncio.get_running_loop().time
    uploaded = await client.files.create(file=("demo.jsonl", content), purpose="batch")
    started = now()
    batch = await client.batches.create(
        input_file_id=uploaded.id, endpoint=ENDPOINT, completion_window="24h"
    )
    while batch.status not in ENDED:
        await asyncio.sleep(POLL_SECONDS)
        batch = await client.batches.retrieve(batch.id)
        on_progress(batch)
    ended = now()
    if batch.status != "completed" or batch.output_file_id is None:
        raise BenchmarkFailed(f"the batch ended as {batch.status}: {batch.errors}")
    if batch.error_file_id is not None:
        errors = await client.files.content(batch.error_file_id)
        raise BenchmarkFailed(f"the batch has an error file; first line: {errors.text[:300]}")
    output = await client.files.content(batch.output_file_id)
    answers = check_output(content, output.content)
    return BatchResult(
        id=batch.id,
        rows=len(_lines(content)),
        answers=len(answers),
        started_at=started,
        ended_at=ended,
        usage=sum((Usage.from_openai(body["usage"]) for body in answers.values()), Usage()),
        sample=str(answers[min(answers)]["choices"][0]["message"]["content"]),
    )


def check_output(sent: bytes, received: bytes) -> dict[str, dict[str, Any]]:
    """The answers by ``custom_id``. Raises BenchmarkFailed on the first thing amiss.

    Every ``custom_id`` must be there once, with status 200, text, and usage of just the tokens
    asked for.
    """
    wanted = {line["custom_id"]: line["body"] for line in map(json.loads, _lines(sent))}
    answers: dict[str, dict[str, Any]] = {}
    for line in map(json.loads, _lines(received)):
        name = line["custom_id"]
        if name in answers or name not in wanted:
            raise BenchmarkFailed(f"custom_id {name!r} is in the output twice or was never sent")
        answers[name] = _checked(line, wanted[name])
    if missing := wanted.keys() - answers.keys():
        raise BenchmarkFailed(
            f"{len(missing)} requests have no output line, such as {min(missing)!r}"
        )
    return answers


def _checked(line: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    name, response = line["custom_id"], line["response"]
    if line["error"] is not None or response["status_code"] != 200:  # noqa: PLR2004
        raise BenchmarkFailed(f"the line of {name!r} is not a success")
    body: dict[str, Any] = response["body"]
    if not body["choices"][0]["message"]["content"]:
        raise BenchmarkFailed(f"the answer to {name!r} has no text")
    if body["usage"]["completion_tokens"] != request["max_tokens"]:
        raise BenchmarkFailed(f"the answer to {name!r} does not have the length asked for")
    return body


def _lines(content: bytes) -> list[bytes]:
    return [line for line in content.split(b"\n") if line]
