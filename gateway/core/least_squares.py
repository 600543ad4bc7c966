"""A linear fit that forgets: least squares over what was seen of late."""

from collections.abc import Sequence

_LEAST = 1e-9


class ForgetfulFit:
    """Fits ``y = weights · x`` with weights above 0.

    Least squares with exponential forgetting, ridge towards ``start``: these are the weights
    believed at first, as firmly as ``trust`` says. What was seen before counts ``forget`` as much
    with each new observation. The weights are solved for on each ``every``-th observation.
    """

    def __init__(
        self, start: Sequence[float], *, forget: float, trust: float, every: int = 1
    ) -> None:
        size = len(start)
        self.weights = list(start)
        self._start = tuple(start)
        self._forget = forget
        self._trust = trust
        self._every = every
        self._products = [[0.0] * size for _ in range(size)]
        self._sums = [0.0] * size
        self._unsolved = 0

    def predict(self, x: Sequence[float]) -> float:
        """The fit's ``y``."""
        return sum(weight * value for weight, value in zip(self.weights, x, strict=True))

    def learn(self, x: Sequence[float], y: float) -> None:
        """Take an observation into account."""
        forget, sums = self._forget, self._sums
        for i, value in enumerate(x):
            row = self._products[i]
            for j, other in enumerate(x):
                row[j] = forget * row[j] + value * other
            sums[i] = forget * sums[i] + value * y
        self._unsolved += 1
        if self._unsolved >= self._every:
            self._unsolved = 0
            self._solve()

    def turn(self, factor: float, kept: float) -> None:
        """All ``y`` are now ``factor`` times what they were.

        What was seen before counts as if it had been so already, and only ``kept`` as much.
        """
        self._products = [[kept * value for value in row] for row in self._products]
        self._sums = [kept * factor * value for value in self._sums]
        self._solve()

    def _solve(self) -> None:
        matrix = [
            [*(value + (self._trust if i == j else 0.0) for j, value in enumerate(row)), total]
            for i, (row, total) in enumerate(zip(self._products, self._sums, strict=True))
        ]
        for i, start in enumerate(self._start):
            matrix[i][-1] += self._trust * start
        self.weights = [max(value, _LEAST) for value in _solved(matrix)]


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
