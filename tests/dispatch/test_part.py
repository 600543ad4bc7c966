"""Parts of a target's caps: even ones for rows, turns for prompts."""

from collections.abc import Sequence

from gateway.core.load import LaneLoad
from gateway.dispatch.part import Part
from tests.support.clock import ManualClock


class _Few:
    """Parts that hear each other at once, each with the rows that it started."""

    def __init__(self, *names: str) -> None:
        self.clock = ManualClock()
        self.words = 0
        self.parts = {name: Part(name, self.clock, self._speak, lambda: True) for name in names}
        self.loads = {name: LaneLoad() for name in names}

    def _speak(self) -> None:
        self.words += 1

    def set(self, name: str, running: int, prefilling: int = 0, *, wishes: bool = True) -> None:
        """What one has in flight; all others hear it, and the turns."""
        self.loads[name] = LaneLoad(running, prefilling, wishes)
        self.tell()

    def tell(self) -> None:
        """Everybody hears everybody."""
        for name, part in self.parts.items():
            part.said(self.loads[name])
            for other in self.parts.keys() - {name}:
                part.others[other] = self.loads[other]
                part.heard(self.parts[other].turn)

    def pass_by(self, seconds: float, names: Sequence[str] = ()) -> None:
        """Time passes, then each looks at its turn."""
        self.clock.advance(seconds)
        for name in names or self.parts:
            self.parts[name].look(self.loads[name])
            self.tell()


def test_alone_all_of_it_is_ours() -> None:
    """No word is spoken, nothing is waited for."""
    few = _Few("a")
    part = few.parts["a"]
    assert (part.window(16), part.rows(16, 5), part.prompts(1, 0), part.tokens(100)) == (
        (16, 11, 1, 100)
    )
    assert part.beside() == few.words == 0


def test_nothing_starts_before_it_is_known_who_is_there() -> None:
    """A dispatcher that has just started asks first."""
    part = Part("a", ManualClock(), lambda: None, lambda: False)
    assert part.rows(16, 0) == 0


def test_rows_are_divided_evenly() -> None:
    """The rest of the division goes to the first names; together it is the cap."""
    few = _Few("a", "b", "c")
    for name in few.parts:
        few.set(name, 1)
    assert [part.window(16) for part in few.parts.values()] == [6, 5, 5]
    assert [part.rows(16, 1) for part in few.parts.values()] == [5, 4, 4]


def test_who_does_not_use_the_target_has_no_part() -> None:
    """An idle dispatcher leaves everything to the others."""
    few = _Few("a", "b")
    few.set("a", 1)
    few.set("b", 0, wishes=False)
    assert few.parts["a"].rows(16, 1) == 15


def test_who_comes_waits_until_there_is_room() -> None:
    """First it is said, then the others' rows end; their sum with ours is never more."""
    few = _Few("a", "b")
    few.set("b", 16)
    few.clock.advance(1)
    assert few.parts["a"].rows(16, 0) == 0
    assert few.words == 1
    few.set("a", 0)
    assert few.parts["a"].rows(16, 0) == 0
    few.clock.advance(0.06)
    assert few.parts["a"].rows(16, 0) == 0
    assert few.parts["b"].rows(16, 16) < 0
    few.set("b", 13)
    assert few.parts["a"].rows(16, 0) == 3
    assert few.parts["b"].rows(16, 13) < 0


def test_one_prompt_at_a_time_goes_round() -> None:
    """The one with the turn reads its prompt, then the next one who waits has it."""
    few = _Few("a", "b", "c")
    for name in few.parts:
        few.set(name, 4)
    few.pass_by(1.0)
    served = []
    for _ in range(6):
        able = [name for name, part in few.parts.items() if part.prompts(1, 0) == 1]
        few.tell()
        assert len(able) == 1
        served += able
        few.set(able[0], 5, 1)
        assert [part.prompts(1, int(n == able[0])) for n, part in few.parts.items()] == [0, 0, 0]
        few.pass_by(0.2)
        assert max(p.prompts(1, int(n == able[0])) for n, p in few.parts.items()) <= 0
        few.set(able[0], 4)
        few.pass_by(0.0)
    assert sorted(served[:3]) == sorted(served[3:]) == ["a", "b", "c"]


def test_short_prompts_follow_each_other_in_one_turn() -> None:
    """For 50 ms nothing is passed; afterwards nothing more is begun."""
    few = _Few("a", "b")
    few.set("a", 1)
    few.set("b", 1)
    few.pass_by(0.0)
    for _ in range(4):
        assert few.parts["a"].prompts(1, 0) == 1
        assert few.parts["b"].prompts(1, 0) == 0
        few.pass_by(0.01)
    few.clock.advance(0.02)
    assert few.parts["a"].prompts(1, 0) == 0
    few.tell()
    assert few.parts["b"].prompts(1, 0) == 1


def test_a_turn_is_not_kept_without_rows() -> None:
    """Who has nothing that waits passes it on at once, also between two words."""
    few = _Few("a", "b")
    few.set("a", 1)
    few.set("b", 1)
    few.pass_by(0.0)
    assert few.parts["a"].prompts(1, 0) == 1
    few.set("a", 1, wishes=False)
    few.pass_by(0.0)
    assert few.parts["b"].prompts(1, 0) == 1


def test_a_turn_of_one_who_is_gone_is_taken() -> None:
    """By the first name of those who wait."""
    few = _Few("a", "b", "c")
    for name in few.parts:
        few.set(name, 1)
    few.pass_by(0.0)
    assert few.parts["b"].prompts(1, 0) == 0
    for name in ("b", "c"):
        del few.parts[name].others["a"]
    del few.parts["a"], few.loads["a"]
    few.pass_by(0.0)
    assert [part.prompts(1, 0) for part in few.parts.values()] == [1, 0]


def test_several_prompts_are_divided_and_the_rest_goes_round() -> None:
    """Of three prompts for two each has one, and one turn."""
    few = _Few("a", "b")
    few.set("a", 1)
    few.set("b", 1)
    few.pass_by(0.0)
    assert [part.prompts(3, 0) for part in few.parts.values()] == [2, 1]
    few.set("a", 3, 2)
    few.pass_by(0.1)
    assert [few.parts["a"].prompts(3, 2), few.parts["b"].prompts(3, 0)] == [-1, 1]
    few.set("a", 3, 1)
    few.pass_by(0.1)
    assert [few.parts["a"].prompts(3, 1), few.parts["b"].prompts(3, 0)] == [0, 2]
    assert few.parts["a"].tokens(8192) == 4096


def test_fewer_rows_than_dispatchers_go_round() -> None:
    """A window of one is had in turns; each has one row of it worth holding."""
    few = _Few("a", "b")
    few.set("a", 0)
    few.set("b", 0)
    few.clock.advance(0.1)
    few.pass_by(0.0)
    assert [part.rows(1, 0) for part in few.parts.values()] == [1, 0]
    assert [part.window(1) for part in few.parts.values()] == [1, 1]
    few.set("a", 1, 0, wishes=False)
    few.pass_by(0.0)
    assert few.parts["b"].rows(1, 0) == 0
    few.set("a", 0)
    assert [part.rows(1, 0) for part in few.parts.values()] == [0, 1]
