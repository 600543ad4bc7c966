"""Which flags of an engine would reach the gap between tokens that a policy wants.

A gateway cannot turn an engine's step budget; it can say what turning it would do. The worst gap is
a step that is full: rows that decode, and prompt tokens up to the budget.
"""

from dataclasses import dataclass

from gateway.pacing.step_time import StepTime

_ROUND = 64
# Budgets are tried in steps of 64 tokens up to here, above in so many.
_FINE, _COARSE = 16_384, 256


@dataclass(frozen=True, slots=True)
class EngineFlags:
    """As vLLM names them."""

    max_num_seqs: int
    max_num_batched_tokens: int
    priority: bool = False


@dataclass(frozen=True, slots=True)
class OfflineLoad:
    """Mean tokens in and out of offline rows, and the tokens that the cache holds."""

    prompt: float
    output: float
    kv_tokens: float

    @property
    def context(self) -> float:
        """Mean tokens in the cache of a row that decodes."""
        return self.prompt + self.output / 2


@dataclass(frozen=True, slots=True)
class Advice:
    """``flags`` to set; the longest gap and the offline tokens a second, now and then.

    ``reached`` says whether the target is met by any flags.
    """

    flags: EngineFlags
    gap_now: float
    gap_then: float
    offline_now: float
    offline_then: float
    reached: bool

    @property
    def cost(self) -> float:
        """The share of offline throughput that it takes."""
        return max(0.0, 1 - self.offline_then / self.offline_now)

    def command(self) -> str:
        """The flags as they are written."""
        policy = " --scheduling-policy priority" if self.flags.priority else ""
        return (
            f"--max-num-seqs {self.flags.max_num_seqs} "
            f"--max-num-batched-tokens {self.flags.max_num_batched_tokens}{policy}"
        )


def advise(step: StepTime, load: OfflineLoad, flags: EngineFlags, itl_target: float) -> Advice:
    """Of the flags up to those there are: where a full step is within the target, the fastest.

    Where none is, the smallest. The priority policy costs nothing and helps when an arrival meets
    rows that wait in the engine.
    """
    able = [f for f in _smaller(flags) if full_step(step, load, f) <= itl_target]
    chosen = max(able, key=lambda f: offline_tokens(step, load, f)) if able else _smaller(flags)[-1]
    return Advice(
        chosen,
        full_step(step, load, flags),
        full_step(step, load, chosen),
        offline_tokens(step, load, flags),
        offline_tokens(step, load, chosen),
        reached=bool(able),
    )


def full_step(step: StepTime, load: OfflineLoad, flags: EngineFlags) -> float:
    """Seconds of a step whose budget is used up."""
    rows = _rows(load, flags)
    return _decoding(step, load, rows) + step.d * max(0.0, flags.max_num_batched_tokens - rows)


def offline_tokens(step: StepTime, load: OfflineLoad, flags: EngineFlags) -> float:
    """Tokens in and out a second of an endless backlog alone."""
    rows = _rows(load, flags)
    seconds = _decoding(step, load, rows) + step.d * rows * load.prompt / load.output
    return rows / (load.output * seconds) * (load.prompt + load.output)


def _rows(load: OfflineLoad, flags: EngineFlags) -> float:
    """Rows that decode when the engine is full of offline work."""
    balanced = flags.max_num_batched_tokens / (1 + load.prompt / load.output)
    return max(1.0, min(flags.max_num_seqs, load.kv_tokens / load.context, balanced))


def _smaller(flags: EngineFlags) -> list[EngineFlags]:
    """The flags as they are, and smaller ones; an engine wants a token of budget for each slot."""
    most = flags.max_num_batched_tokens
    coarse = range(most, _FINE, -max(_ROUND, most // _COARSE))
    fine = min(most, _FINE)
    budgets = [*coarse, fine, *range(fine // _ROUND * _ROUND, 0, -_ROUND)]
    slots = [flags.max_num_seqs >> shift for shift in range(flags.max_num_seqs.bit_length())]
    return [EngineFlags(min(seqs, b), b, priority=True) for seqs in slots for b in budgets]


def _decoding(step: StepTime, load: OfflineLoad, rows: float) -> float:
    return step.seconds(rows, rows * load.context, 0)
