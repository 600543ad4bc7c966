"""Named steps of the product at which a test has a process killed, wrapped from outside.

A test arms one step by writing it to a file in a folder that the processes watch. The first process
that comes to the step takes the file away and dies by SIGKILL, or kills the queue's server and goes
on. See ``failing`` for how the product is started with its steps wrapped.
"""

import functools
import importlib
import inspect
import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

_ARMED = "armed"
_STORE = "gateway.store."
_BATCHES = _STORE + "batches:BatchStore."
_QUEUE = _STORE + "queue:QueueClient."
_SETTLE = _STORE + "settle:QueueSettlement."


def _any(_: object) -> bool:
    return True


def _some(result: object) -> bool:
    return result is not None


@dataclass(frozen=True)
class Step:
    """Just before or after the ``hit``-th call of a function in processes of one ``role``.

    ``where`` is ``module:name`` where it is looked up; after it, ``only`` says which results count.
    """

    role: Literal["serve", "dispatch"]
    when: Literal["before", "after"]
    where: str
    hit: int = 1
    only: Callable[[Any], bool] = _any


GATEWAY = {
    "upload written, not recorded": Step("serve", "before", _STORE + "files:FileStore.record"),
    "uploaded, no batch yet": Step("serve", "after", _STORE + "files:FileStore.record"),
    "idempotency key claimed": Step("serve", "after", _BATCHES + "claim_key"),
    "input linked": Step("serve", "before", _STORE + "batch_disk:BatchDisk.save_facts"),
    "manifest written": Step("serve", "after", _STORE + "batch_disk:BatchDisk.save_facts"),
    "record made": Step("serve", "after", _STORE + "job_commands:JobCommands.add"),
    "intake asked for": Step("serve", "after", _BATCHES + "ask_intake"),
}
CANCEL = {
    "cancel noted": Step("serve", "after", _BATCHES + "move"),
    "cancel durable": Step("serve", "after", _BATCHES + "mark_cancel"),
    "segments cancelled": Step("serve", "after", "gateway.batches.service:stop_segments"),
}
INTAKE = {
    "intake claimed": Step("dispatch", "after", _BATCHES + "claim_intake", only=_some),
    "between two indexes": Step("dispatch", "before", "gateway.batches.ingest:packed", hit=2),
    "ingested": Step("dispatch", "after", "gateway.batches.intake:run_ingest"),
    "one segment enqueued": Step("dispatch", "after", _QUEUE + "enqueue"),
    "both segments enqueued": Step("dispatch", "after", _QUEUE + "enqueue", hit=2),
    "plan written": Step("dispatch", "after", _BATCHES + "mark_plan"),
    "in progress": Step("dispatch", "after", _BATCHES + "move"),
    "one segment started": Step("dispatch", "after", _QUEUE + "start"),
    "both segments started": Step("dispatch", "before", _BATCHES + "end_intake"),
}
ROWS = {
    "leased, not called": Step("dispatch", "after", _QUEUE + "lease", only=_some),
    "called": Step("dispatch", "before", "gateway.dispatch.run:RowRunner.run", hit=3),
    "answered": Step("dispatch", "after", "gateway.dispatch.run:RowRunner.run", hit=3),
    "results collected": Step("dispatch", "before", _STORE + "parts:PartFiles.append"),
    "part written, not committed": Step("dispatch", "after", _STORE + "parts:PartFiles.append"),
    "committed": Step("dispatch", "after", _SETTLE + "commit_all"),
    "retry promoted": Step("dispatch", "after", _SETTLE + "tick", only=lambda t: t.promoted > 0),
}
FINISH = {
    "segment claimed": Step("dispatch", "after", _SETTLE + "finish_claim", only=_some),
    "output lines written": Step("dispatch", "after", "gateway.batches.outputs:_Lines.finish"),
    "lines written": Step("dispatch", "after", "gateway.batches.finalize:write_lines"),
    "segment noted": Step("dispatch", "after", _BATCHES + "close_segment"),
    "last segment noted": Step("dispatch", "after", _BATCHES + "close_segment", hit=2),
    "output merged": Step("dispatch", "after", "gateway.batches.publish:Publisher._merge"),
    "output linked, no record": Step("dispatch", "before", _STORE + "files:FileStore.record"),
    "output recorded": Step("dispatch", "after", _STORE + "files:FileStore.record"),
    "both files recorded": Step("dispatch", "after", _STORE + "files:FileStore.record", hit=2),
    "state final": Step("dispatch", "after", "gateway.batches.publish:Publisher._end"),
    "state durable": Step("dispatch", "after", _BATCHES + "save_final"),
    "segment finished": Step("dispatch", "after", _SETTLE + "finish_commit"),
    "last segment finished": Step("dispatch", "after", _SETTLE + "finish_commit", hit=2),
}
REAP = {
    "leases taken back": Step("dispatch", "after", _SETTLE + "reap", only=lambda r: r.leases > 0),
}
RECONCILE = {
    "loss noticed": Step("dispatch", "after", _BATCHES + "begin_epoch"),
    "batch put back": Step("dispatch", "after", _BATCHES + "put_back"),
    "one segment made again": Step("dispatch", "after", _STORE + "rebuild:QueueRebuild.rebuild"),
    "all put back": Step("dispatch", "before", _BATCHES + "end_epoch"),
}
JOB = {
    "job written": Step("serve", "before", _STORE + "jobs:JobStore._list"),
    "job listed": Step("serve", "after", _STORE + "jobs:JobStore._list"),
    "job enqueued": Step("serve", "after", "gateway.jobs.service:enqueue"),
    "job leased": Step("dispatch", "after", _QUEUE + "lease", only=_some),
    "job's part written": Step("dispatch", "after", _STORE + "parts:PartFiles.append"),
    "job committed": Step("dispatch", "after", _SETTLE + "commit_all"),
    "job's state final": Step("dispatch", "after", _STORE + "jobs:JobStore.end"),
    "job's state durable": Step("dispatch", "after", _STORE + "jobs:JobStore.save"),
    "job's segment finished": Step("dispatch", "after", _SETTLE + "finish_commit"),
}
STEPS = GATEWAY | JOB | CANCEL | INTAKE | ROWS | FINISH | REAP | RECONCILE


class Failpoints:
    """One armed step at a time, in a ``folder`` that all processes of a test see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._armed = folder / _ARMED
        self._hits: dict[str, int] = {}

    def arm(self, step: str, victim: str = "itself") -> None:
        """Kill at the next time that somebody comes to ``step``; ``victim`` may be ``queue``."""
        assert step in STEPS
        self._armed.with_suffix(".new").write_text(json.dumps([step, victim, os.urandom(4).hex()]))
        self._armed.with_suffix(".new").rename(self._armed)

    def fired(self) -> bool:
        """Whether the armed step was reached."""
        return not self._armed.exists()

    def wrap(self, role: str, data_dir: Path) -> None:
        """Wrap the steps of this process, which has that role."""
        for name, step in STEPS.items():
            if step.role == role:
                _replace(step, functools.partial(self._reached, name, data_dir))

    def _reached(self, name: str, data_dir: Path) -> None:
        with suppress(FileNotFoundError):
            text = self._armed.read_text()
            step, victim, _ = json.loads(text)
            if step != name:
                return
            self._hits[text] = self._hits.get(text, 0) + 1
            if self._hits[text] == STEPS[name].hit:
                self._armed.rename(self._armed.with_suffix(".fired"))
                _kill(victim, data_dir)


def _kill(victim: str, data_dir: Path) -> None:
    pid = os.getpid()
    if victim == "queue":
        pid = json.loads((data_dir / "queue" / "endpoint.json").read_text())["pid"]
    os.kill(pid, signal.SIGKILL)


def _replace(step: Step, reached: Callable[[], None]) -> None:
    module, _, path = step.where.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    setattr(owner, name, _wrapped(getattr(owner, name), step, reached))


def _wrapped(original: Any, step: Step, reached: Callable[[], None]) -> Any:
    if not inspect.iscoroutinefunction(original):
        assert step.when == "before"

        @functools.wraps(original)
        def plain(*args: Any, **kwargs: Any) -> Any:
            reached()
            return original(*args, **kwargs)

        return plain

    @functools.wraps(original)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        if step.when == "before":
            reached()
        result = await original(*args, **kwargs)
        if step.when == "after" and step.only(result):
            reached()
        return result

    return wrapper
