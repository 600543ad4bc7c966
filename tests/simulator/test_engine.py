"""Continuous batching without computing."""

import random
from dataclasses import replace
from typing import Any

import pytest

from gateway.core.errors import ConfigError
from gateway.simulator.engine import Engine, Step
from gateway.simulator.profile import EngineProfile
from gateway.simulator.sequence import Sequence, State

PROFILE = EngineProfile("x", 10.0, 0.1, 0.001, 1.0, 10_000, 0.0, 8, 100)


def _engine(policy: str = "fcfs", *sequences: Sequence, **changes: Any) -> Engine:
    engine = Engine(replace(PROFILE, **changes), policy)
    for sequence in sequences:
        engine.add(sequence)
    return engine


def _run(engine: Engine) -> list[Step]:
    steps = []
    while not engine.idle:
        steps.append(engine.step())
    return steps


def test_a_prompt_is_read_in_pieces_and_its_end_gives_the_first_token() -> None:
    """A token more each step until the last one."""
    sequence = Sequence(250, 3)
    engine = _engine("fcfs", sequence)
    steps = _run(engine)
    assert [(step.rows, step.prefill) for step in steps] == [
        (0, 100),
        (0, 100),
        (0, 50),
        (1, 0),
        (1, 0),
    ]
    assert [bool(step.first) for step in steps] == [False, False, True, False, False]
    assert steps[-1].ended == (sequence,)
    assert [step.kv for step in steps] == [0, 0, 0, 250, 251]
    assert engine.kv_used == 0


def test_a_step_takes_the_time_of_its_work() -> None:
    """The profile says how long."""
    engine = _engine("fcfs", Sequence(250, 3))
    first, *_, last = _run(engine)
    assert first.seconds == PROFILE.seconds(0, 0, 100)
    assert last.seconds == PROFILE.seconds(1, 251, 0)


def test_running_rows_decode_while_others_are_read() -> None:
    """What decodes has its token first, prompts get the rest of the step."""
    engine = _engine("fcfs", Sequence(60, 9), Sequence(60, 9))
    assert engine.step().prefill == 100
    step = engine.step()
    assert (step.rows, step.prefill) == (1, 20)


def test_no_more_sequences_than_slots() -> None:
    """The others wait, and are started when one ends."""
    engine = _engine("fcfs", *(Sequence(5, 3) for _ in range(12)))
    engine.step()
    assert (engine.running, engine.waiting) == (8, 4)
    _run(engine)
    assert engine.idle


def test_a_full_cache_takes_the_newest_row_back() -> None:
    """It is read again with what it had, and ends with all its tokens."""
    old, new = Sequence(40, 40), Sequence(40, 40)
    engine = _engine("fcfs", old, new, kv_tokens=100)
    ended = [sequence for step in _run(engine) for sequence in step.ended]
    assert ended == [old, new]
    assert engine.preemptions == 1
    assert 0 < new.kept < 40


def test_by_priority_the_urgent_row_stays() -> None:
    """The newest one is kept when it matters more."""
    batch, urgent = Sequence(40, 40, priority=9), Sequence(40, 40, priority=0)
    engine = _engine("priority", batch, kv_tokens=100)
    engine.step()
    engine.add(urgent)
    ended = [sequence for step in _run(engine) for sequence in step.ended]
    assert ended == [urgent, batch]
    assert batch.kept


def test_a_prompt_waits_until_all_of_it_fits() -> None:
    """It does not push out those that run."""
    engine = _engine("fcfs", Sequence(50, 10), Sequence(80, 10), kv_tokens=100)
    engine.step()
    assert (engine.running, engine.waiting) == (1, 1)
    _run(engine)
    assert engine.preemptions == 0


def test_what_can_never_fit_fails_and_holds_nobody_up() -> None:
    """Also when the cache has become smaller."""
    huge, small = Sequence(90, 20), Sequence(10, 2)
    engine = _engine("fcfs", huge, small, kv_tokens=100)
    steps = _run(engine)
    assert steps[0].failed == (huge,)
    assert huge.failed
    assert huge.state is State.DONE
    assert steps[-1].ended == (small,)
    half = Sequence(60, 30)
    engine.add(half)
    engine.step()
    engine.profile = replace(engine.profile, kv_tokens=50)
    assert [s for step in _run(engine) for s in step.failed] == [half]


def test_a_cancelled_sequence_frees_its_place_at_once() -> None:
    """While it waits, is read, or decodes."""
    made = [Sequence(10, 50), Sequence(150, 50), Sequence(10, 50)]
    engine = _engine("fcfs", *made)
    engine.step()
    assert [s.state for s in made] == [State.DECODE, State.PREFILL, State.WAITING]
    for sequence in made:
        engine.cancel(sequence)
        engine.cancel(sequence)
    assert engine.idle
    assert engine.kv_used == 0
    assert engine.step() == Step(0.0, (), (), (), 0, 0, 0)


def test_an_unknown_policy_is_refused() -> None:
    """With the names there are."""
    with pytest.raises(ConfigError, match="fcfs"):
        Engine(PROFILE, "lifo")


@pytest.mark.parametrize("policy", ["fcfs", "priority"])
@pytest.mark.parametrize("seed", range(6))
def test_every_sequence_gets_its_tokens_whatever_happens(policy: str, seed: int) -> None:
    """Tokens, cache and slots are right after any mix of arrivals, preemptions and cancels."""
    draw = random.Random(seed)
    engine = _engine(policy, kv_tokens=400)
    tokens: dict[Sequence, int] = {}
    ended: set[Sequence] = set()
    for at in range(3000):
        if at < 2000 and draw.random() < 0.1:
            made = Sequence(draw.randint(1, 200), draw.randint(1, 60), draw.randint(0, 2))
            tokens[made] = 0
            engine.add(made)
        if draw.random() < 0.01 and tokens:
            gone = draw.choice(list(tokens))
            engine.cancel(gone)
            if gone not in ended:
                del tokens[gone]
        step = engine.step()
        for sequence in (*engine.decoding, *step.ended):
            tokens[sequence] += 1
        assert all(tokens[s] == engine.generated(s) for s in engine.decoding)
        ended.update(step.ended)
        assert 0 <= engine.kv_used <= 400
        assert engine.running <= 8
    assert engine.idle
    assert engine.preemptions
    assert engine.kv_used == 0
    assert all(count == sequence.output for sequence, count in tokens.items())
    assert ended >= set(tokens)
