"""One target as the dispatcher uses it: its places, its limits, its state, and who runs there."""

import logging
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gateway.core.clock import Clock
from gateway.core.load import LaneLoad, TargetLoad
from gateway.core.rates import RateLimits
from gateway.core.targets import EngineLoad
from gateway.core.usage import Usage
from gateway.dispatch.gate import Gate
from gateway.dispatch.held import HeldRow
from gateway.dispatch.rate import RateBudget
from gateway.dispatch.visit import RowVisit
from gateway.pacing.window import MOST_TAKEN_BACK, Pacer

if TYPE_CHECKING:
    from gateway.dispatch.purse import Purse
    from gateway.pacing.watch import EngineWatch

log = logging.getLogger(__name__)

_CROWD_SECONDS = 10.0
_CUT = 0.8
_AHEAD_SECONDS = 2.0
_MOST_CROWDS = 30
_LOOK_AGAIN = 0.25
_WISH_SECONDS = 0.5


class TargetLane:
    """The batch lane of one target. Everything that may start there asks ``wait``.

    ``budgets`` has one entry per credential of the target, in the policy's order. ``start`` rows
    run at first; each one that is taken lets one more in, until a throttle says where the end is.
    Nothing starts while ``admits`` says no, or beyond what the ``purse`` holds. Rows that crashed
    before, *suspects*, run with nobody else at their target: whoever has them keeps the lane for
    them (``isolating``).
    """

    def __init__(
        self,
        name: str,
        pacer: Pacer,
        gate: Gate,
        budgets: Sequence[RateBudget],
        clock: Clock,
        *,
        start: float = math.inf,
    ) -> None:
        self.name = name
        self.gate = gate
        self.running: dict[HeldRow, Visit] = {}
        self.prefilling: dict[HeldRow, int] = {}
        self.suspects = False
        self.isolating: object | None = None
        self.admits: Callable[[], bool] = lambda: True
        self.purse: Purse | None = None
        self.watch: EngineWatch | None = None
        self.users: list[Callable[[], None]] = []
        self.taken = 0
        self._prefill_tokens = 0
        self.pacer = pacer
        self._budgets = budgets
        self._clock = clock
        self._open = start
        self._safe = math.inf
        self._cut_at = 0.0
        self._throttled: dict[object, float] = {}
        self._crowds = 0
        self._silent_since = 0.0
        self._wished_at = -math.inf

    def wait(self, tokens: float, *, suspect: bool = False, elsewhere: bool = False) -> float:
        """Seconds until a row may start; 0: now; inf: when another row ends.

        ``elsewhere``: the row has another target that works.
        """
        running = len(self.running)
        self._wished_at = -math.inf
        if running and (suspect is not self.suspects or running >= self._open):
            return math.inf
        if not self.admits() or (self.purse and not self.purse.affords(tokens)):
            return _LOOK_AGAIN
        if not self.pacer.places(running, len(self.prefilling), self._prefill_tokens):
            if running >= self.pacer.window():
                return math.inf
            self._wished_at = self._clock.monotonic()
            return _LOOK_AGAIN
        if not self.gate.places(elsewhere=elsewhere):
            return self.gate.wait()
        now = self._clock.monotonic()
        return min(budget.wait(now, tokens) for budget in self._budgets)

    def enter(self, row: HeldRow, *, suspect: bool) -> "Visit":
        """``row`` starts; ``wait`` said that it may."""
        now = self._clock.monotonic()
        tokens = row.source.tokens
        key = min(range(len(self._budgets)), key=lambda k: self._budgets[k].wait(now, tokens))
        self.gate.asking()
        self.suspects = suspect
        visit: Visit = RowVisit(self, row, key, now, self._budgets[key].take(now, tokens))
        visit.cost = self.purse.reserve(tokens) if self.purse else 0.0
        self.running[row] = visit
        self.pacer.started()
        self.prefilling[row] = row.source.prompt_tokens
        self._prefill_tokens += row.source.prompt_tokens
        return visit

    def leave(self, row: HeldRow) -> None:
        """``row`` runs no more."""
        self._prefilled(row)
        if self.watch:
            self.watch.end(row)
        visit = self.running.pop(row, None)
        if visit is not None and self.purse and visit.cost:
            self.purse.dropped(visit.cost, begun=visit.begun)
        if visit is not None and row.ended:
            self.pacer.ended(self._clock.monotonic() - visit.started, visit.gap)

    def generates(self, visit: "Visit") -> None:
        """The row has its first token: the next prompt may go out."""
        visit.first_at = self._clock.monotonic()
        if self.watch:
            self.watch.first(visit.row, visit.row.source.prompt_tokens)
        if tokens := self._prefilled(visit.row):
            waited = visit.first_at - visit.started
            self.pacer.first_token(waited, tokens, len(self.running))
            self.call()

    def _prefilled(self, row: HeldRow) -> int:
        tokens = self.prefilling.pop(row, 0)
        self._prefill_tokens -= tokens
        return tokens

    def told(self, load: EngineLoad) -> None:
        """What the target says of itself."""
        if self.watch:
            self.watch.told(load)
        self.pacer.told(load, len(self.running))

    def hear(self, before: TargetLoad, now: TargetLoad) -> None:
        """What a gateway said of interactive calls here before, and what it says now."""
        self.pacer.heard(now)
        if now.calls > before.calls or now.prefilling > before.prefilling:
            self.make_way()
        if (now.calls, now.prefilling) != (before.calls, before.prefilling):
            self.call()

    def load(self) -> LaneLoad:
        """What to tell other dispatchers: our rows here, and whether more would start."""
        wishes = self._clock.monotonic() - self._wished_at < _WISH_SECONDS
        return LaneLoad(len(self.running), len(self.prefilling), wishes)

    def make_way(self) -> None:
        """An interactive call came: rows without a token may have to wait behind it.

        A row that is taken back keeps its tries and its place in the line. After three times it is
        let go on, so that it comes to its end whatever else comes.
        """
        now = self._clock.monotonic()
        for ahead, (row, tokens) in reversed(list(enumerate(self.prefilling.items()))):
            waited = now - self.running[row].started
            if row.task is None or row.dropped or row.taken_back >= MOST_TAKEN_BACK:
                continue
            if self.pacer.makes_way(waited, tokens, ahead):
                row.makes_way = True
                row.taken_back += 1
                row.task.cancel()

    def window(self) -> int:
        """Rows worth holding for this target now."""
        if not self.admits() or (self.purse and not self.purse.open()):
            return 0
        if not self.gate.healthy:
            return 1
        soon = sum(budget.rate() for budget in self._budgets) * _AHEAD_SECONDS
        return int(min(self.pacer.window(), self._open, len(self.running) + max(soon, 1)))

    def call(self) -> None:
        """Something changed: everyone who uses the lane looks whether a row may start."""
        for user in self.users:
            user()

    def took(self, visit: "Visit", rates: RateLimits | None) -> None:
        """The target takes a row: its answer has begun."""
        budget = self._budgets[visit.key]
        budget.accepted()
        if rates is not None:
            budget.told(self._clock.monotonic(), rates)
        self.taken += 1
        self._crowds = 0
        if self._open != math.inf:
            self._open += 1 if self._open < self._safe else 1 / self._open
            if self._open > self.pacer.window():
                self._open = math.inf
            self.call()

    def ended(self, visit: "Visit", usage: Usage) -> None:
        """The row's answer is whole and took so many tokens."""
        self._budgets[visit.key].used(visit.started, visit.reserved, usage.total)
        visit.whole(self._clock.monotonic())
        if self.watch:
            self.watch.done(usage)
        if self.purse:
            self.purse.paid(visit.cost, usage)
            visit.cost = 0.0

    def throttled(self, visit: "Visit", told: float | None, rates: RateLimits | None) -> bool:
        """A row was refused for now. False: only this row was, as far as can be told.

        Without a time to wait for it takes two different rows to speak for the target; then one row
        at a time asks whether there is room again.
        """
        now = self._clock.monotonic()
        budget = self._budgets[visit.key]
        budget.give_back(visit.started, visit.reserved, request=False)
        wait = told if told is not None or rates is None else rates.exhausted
        if rates is not None:
            budget.told(now, rates)
        self._throttled = {r: t for r, t in self._throttled.items() if now - t < _CROWD_SECONDS}
        self._throttled[visit.row.name] = now
        if wait is None and len(self._throttled) < 2:  # noqa: PLR2004 - two rows
            return False
        budget.throttled(now, visit.started, wait, rates)
        if visit.started >= self._cut_at:
            self._cut_at = now
            self._silent_since = self._silent_since if self._crowds else now
            self._crowds += 1
            self._safe = max(1.0, _CUT * (len(self.running) + 1))
            self._open = 1.0 if wait is None else self._safe
        return True

    @property
    def hopeless(self) -> bool:
        """Whether the target refuses rows for so long that a refusal is a row's failed try."""
        lasted = self._clock.monotonic() - self._silent_since
        return self._crowds > _MOST_CROWDS and lasted > self.gate.patience

    def undone(self, visit: "Visit") -> None:
        """The row never reached the target."""
        self._budgets[visit.key].give_back(visit.started, visit.reserved, request=True)

    def reject(self, visit: "Visit") -> bool:
        """The row's credential was not accepted. True: there is another one to try."""
        others = [b for key, b in enumerate(self._budgets) if key != visit.key and not b.rejected]
        budget = self._budgets[visit.key]
        if not budget.rejected:
            which = f"{visit.key + 1} of {len(self._budgets)}"
            log.warning("target %s refuses key %s, or its quota is used up", self.name, which)
        budget.rejected = True
        if others:
            budget.reject(self._clock.monotonic())
        return bool(others)

    def shut(self, visit: "Visit") -> None:
        """No credential works; there are other targets, so this one is left alone for a while."""
        self._budgets[visit.key].reject(self._clock.monotonic())

    @property
    def rejected(self) -> bool:
        """Whether no credential works."""
        return all(budget.rejected for budget in self._budgets)


Visit = RowVisit[TargetLane]
"""One row here, with the credential that it uses."""
