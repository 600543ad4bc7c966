"""How long a step takes, learned from the steps that were run."""

from dataclasses import dataclass

_FORGET = 0.95
_SOLVE_EVERY = 4
_HICCUP = 4.0
_SCALE = (1.0, 32.0, 4096.0, 128.0)
_START = (0.008, 0.016, 0.006, 0.04)
_TRUST = 0.3
_LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class Work:
    """What a step does: ``rows`` that decode, over ``kv`` tokens, beside ``prompt`` tokens."""

    rows: int = 0
    kv: int = 0
    prompt: int = 0


class StepTime:
    """Fits ``seconds = a + b * rows + c * kv + d * prompt`` to recent steps.

    Least squares that forget, held near a usual CPU's figures where the steps say nothing.
    """

    def __init__(self) -> None:
        self._weights = list(_START)
        self._products = [[0.0] * 4 for _ in range(4)]
        self._sums = [0.0] * 4
        self._unsolved = 0

    def predict(self, work: Work) -> float:
        """Seconds of a step."""
        return sum(w * x for w, x in zip(self._weights, _scaled(work), strict=True))

    def prompt_within(self, seconds: float) -> int:
        """Prompt tokens that can be read in ``seconds``, beside what is done anyway."""
        return int(max(0.0, seconds) / self._weights[3] * _SCALE[3])

    def learn(self, work: Work, seconds: float) -> None:
        """Take a measured step into account; of a hiccup of the machine, only a part."""
        x = _scaled(work)
        seconds = min(seconds, _HICCUP * self.predict(work))
        for i in range(4):
            for j in range(4):
                self._products[i][j] = _FORGET * self._products[i][j] + x[i] * x[j]
            self._sums[i] = _FORGET * self._sums[i] + x[i] * seconds
        self._unsolved += 1
        if self._unsolved >= _SOLVE_EVERY:
            self._solve()

    def _solve(self) -> None:
        self._unsolved = 0
        matrix = [
            [*(value + (_TRUST if i == j else 0.0) for j, value in enumerate(row)), total]
            for i, (row, total) in enumerate(zip(self._products, self._sums, strict=True))
        ]
        for i, start in enumerate(_START):
            matrix[i][4] += _TRUST * start
        self._weights = [max(value, _LEAST) for value in _solved(matrix)]


def _scaled(work: Work) -> tuple[float, float, float, float]:
    return (1.0, work.rows / _SCALE[1], work.kv / _SCALE[2], work.prompt / _SCALE[3])


def _solved(matrix: list[list[float]]) -> list[float]:
    """Solution of a symmetric positive definite system with its right side as the last column."""
    size = len(matrix)
    for i in range(size):
        for j in range(i + 1, size):
            factor = matrix[j][i] / matrix[i][i]
            matrix[j] = [b - factor * a for a, b in zip(matrix[i], matrix[j], strict=True)]
    found = [0.0] * size
    for i in reversed(range(size)):
        known = sum(matrix[i][j] * found[j] for j in range(i + 1, size))
        found[i] = (matrix[i][size] - known) / matrix[i][i]
    return found
