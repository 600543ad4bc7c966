"""Who takes part in a step."""

from gateway.worker.sampling import SamplingParams
from gateway.worker.scheduler import Scheduler, StepPlan
from gateway.worker.sequence import Event, Sequence, State


def _ignore(_: Event) -> None:
    """Nobody reads these."""


def _sequence(prompt: int, priority: int | None = None) -> Sequence:
    return Sequence([1] * prompt, 50, SamplingParams(), priority, _ignore)


def _scheduler(rows: int = 12, reserved: int = 4, **changes: float) -> Scheduler:
    itl = changes.get("itl_target", 0.05)
    return Scheduler(rows, reserved, itl_target=itl, prefill_chunk=int(changes.get("chunk", 100)))


def _run(plan: StepPlan) -> None:
    for sequence, count in plan.prompts:
        sequence.computed += count
        if sequence.unread == 0:
            sequence.state = State.RUNNING
            sequence.output.append(1)
    for sequence in plan.decodes:
        sequence.output.append(1)


def test_without_priorities_first_come_is_first_served() -> None:
    """Prompts are read in order, some chunks at a time, beside all running rows."""
    scheduler = _scheduler(chunk=25)
    first, second = _sequence(80), _sequence(80)
    scheduler.add(first)
    scheduler.add(second)
    plan = scheduler.plan()
    assert [(s is first, n) for s, n in plan.prompts] == [(True, 80), (False, 20)]
    _run(plan)
    plan = scheduler.plan()
    assert plan.decodes == (first,)
    assert plan.prompts == ((second, 60),)


def test_without_priorities_every_row_may_be_used() -> None:
    """Rows are reserved from work that is said to be offline, from no other."""
    scheduler = _scheduler()
    for _ in range(20):
        scheduler.add(_sequence(1))
    scheduler.plan()
    assert (scheduler.active, scheduler.waiting) == (12, 8)


def test_offline_work_leaves_the_reserved_rows_free() -> None:
    """A batch never takes the last rows; an interactive sequence gets one at once."""
    scheduler = _scheduler()
    for _ in range(20):
        scheduler.add(_sequence(1, 100))
    scheduler.plan()
    assert (scheduler.active, scheduler.waiting) == (8, 12)
    urgent = _sequence(5, 0)
    scheduler.add(urgent)
    scheduler.plan()
    assert urgent.slot in range(4)


def test_an_interactive_prompt_is_read_alone_and_whole() -> None:
    """Offline rows and prompts wait for that one step."""
    scheduler = _scheduler()
    for _ in range(4):
        scheduler.add(_sequence(90, 100))
    _run(scheduler.plan())
    urgent = _sequence(300, 0)
    scheduler.add(urgent)
    plan = scheduler.plan()
    assert plan.prompts == ((urgent, 300),)
    assert plan.decodes == ()


def test_offline_rows_take_turns_beside_an_interactive_one() -> None:
    """The step stays within the target, and every paused row goes on after a while."""
    scheduler = _scheduler(rows=44, itl_target=0.02, chunk=4000)
    offline = [_sequence(1, 100) for _ in range(40)]
    for sequence in offline:
        scheduler.add(sequence)
    _run(scheduler.plan())
    urgent = _sequence(4, 0)
    scheduler.add(urgent)
    _run(scheduler.plan())
    for _ in range(10):
        plan = scheduler.plan()
        assert urgent in plan.decodes
        assert scheduler.times.predict(plan.work) <= 0.02
        _run(plan)
    assert min(len(sequence.output) for sequence in offline) >= 2


def test_a_freed_slot_is_used_in_the_next_step() -> None:
    """No row waits for a batch to end."""
    scheduler = _scheduler(rows=2, reserved=0)
    rows = [_sequence(1) for _ in range(3)]
    for sequence in rows:
        scheduler.add(sequence)
    _run(scheduler.plan())
    scheduler.remove(rows[0])
    assert [s for s, _ in scheduler.plan().prompts] == [rows[2]]


def test_removing_twice_is_harmless() -> None:
    """A reader may leave in the same moment in which its sequence ends."""
    scheduler = _scheduler()
    waiting, active = _sequence(1), _sequence(1)
    scheduler.add(active)
    scheduler.plan()
    scheduler.add(waiting)
    for sequence in (active, active, waiting, waiting):
        scheduler.remove(sequence)
    assert (scheduler.active, scheduler.waiting) == (0, 0)
    assert not scheduler.plan()


def test_offline_prompts_are_read_in_small_chunks_beside_an_interactive_row() -> None:
    """Much at once when nobody waits, as much as the target allows when somebody does."""
    scheduler = _scheduler(chunk=100)
    _start(scheduler, _sequence(4, 0))
    scheduler.add(_sequence(2000, 100))
    plan = scheduler.plan()
    assert 16 <= plan.work.prompt <= 100
    assert scheduler.times.predict(plan.work) <= 0.05


def test_a_long_interactive_prompt_does_not_stall_another_answer() -> None:
    """It is read in chunks beside a row that decodes."""
    scheduler = _scheduler(chunk=100)
    talking = _sequence(4, 0)
    _start(scheduler, talking)
    scheduler.add(_sequence(1500, 0))
    plan = scheduler.plan()
    assert plan.decodes == (talking,)
    assert plan.work.prompt == 100


def test_elastic_goes_before_batch() -> None:
    """In the queue and in reading prompts; first come first served within a class."""
    scheduler = _scheduler(rows=4, reserved=2, chunk=10)
    batch = [_sequence(500, 100) for _ in range(3)]
    for sequence in batch:
        scheduler.add(sequence)
    _run(scheduler.plan())
    elastic = _sequence(500, 10)
    scheduler.add(elastic)
    scheduler.remove(batch[0])
    assert [s for s, _ in scheduler.plan().prompts] == [elastic]


def test_an_interactive_sequence_takes_the_newest_batch_row_when_all_are_used() -> None:
    """The row waits at the head of its class and reads all its tokens again."""
    scheduler = _scheduler(rows=3, reserved=1)
    batch = [_sequence(5, 100) for _ in range(3)]
    for sequence in batch:
        scheduler.add(sequence)
    _run(scheduler.plan())
    _run(scheduler.plan())
    for _ in range(2):
        scheduler.add(_sequence(5, 0))
    assert len(scheduler.plan().prompts) == 2
    assert batch[0].state is State.RUNNING
    assert (batch[1].state, batch[1].unread) == (State.WAITING, 7)
    scheduler.remove(batch[0])
    scheduler.plan()
    assert batch[1].state is State.PREFILL
    assert batch[2].state is State.WAITING


def test_an_urgent_step_holds_interactive_sequences_alone() -> None:
    """It may run inside another step: it touches nobody of that one."""
    scheduler = _scheduler()
    for _ in range(8):
        scheduler.add(_sequence(9, 100))
    outer = scheduler.plan()
    urgent = _sequence(7, 0)
    scheduler.add(urgent)
    inner = scheduler.plan_urgent(outer.members, decode=False)
    assert inner.prompts == ((urgent, 7),)
    _run(inner)
    assert not scheduler.plan_urgent(outer.members, decode=False)
    assert scheduler.plan_urgent(outer.members, decode=True).decodes == (urgent,)


def _start(scheduler: Scheduler, sequence: Sequence) -> None:
    scheduler.add(sequence)
    _run(scheduler.plan())


def _paged(room: int, rows: int = 6) -> Scheduler:
    return Scheduler(rows, 1, itl_target=0.05, prefill_chunk=100, room=room)


def test_a_sequence_waits_until_all_its_tokens_fit() -> None:
    """Prompt and answer in pages of 64; a smaller one does not pass it."""
    scheduler = _paged(5)
    first, large, small = _sequence(78), _sequence(206), _sequence(1)
    for sequence in (first, large, small):
        scheduler.add(sequence)
    scheduler.plan()
    assert (first.state, large.state, small.state) == (State.PREFILL, State.WAITING, State.WAITING)
    scheduler.remove(first)
    scheduler.plan()
    assert (large.state, small.state) == (State.PREFILL, State.PREFILL)


def test_offline_sequences_give_their_room_to_an_interactive_one() -> None:
    """The newest first, and no more of them than it takes."""
    scheduler = _paged(6)
    rows = [_sequence(78, 100) for _ in range(3)]
    for sequence in rows:
        scheduler.add(sequence)
    scheduler.plan()
    urgent = _sequence(78, 0)
    scheduler.add(urgent)
    scheduler.plan()
    assert urgent.state is State.PREFILL
    assert [row.state is State.WAITING for row in rows] == [False, False, True]
