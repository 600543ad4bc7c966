"""How long a step takes, learned from the steps that were run."""

_FORGET = 0.995
_START = (0.007, 0.0009, 0.0004)


class StepTime:
    """Fits ``seconds = a + b * decoding rows + c * prompt tokens`` by recursive least squares."""

    def __init__(self) -> None:
        self._weights = list(_START)
        self._p = [[1e-4 if i == j else 0.0 for j in range(3)] for i in range(3)]

    def predict(self, rows: int, tokens: int) -> float:
        """Seconds of a step; never less than nothing."""
        a, b, c = self._weights
        return max(0.0, a + b * rows + c * tokens)

    def rows_within(self, seconds: float, tokens: int) -> int:
        """Rows that decode in ``seconds`` beside ``tokens`` prompt tokens."""
        a, b, c = self._weights
        return int(max(0.0, seconds - max(0.0, a) - max(0.0, c) * tokens) / max(b, 1e-5))

    def tokens_within(self, seconds: float) -> int:
        """Prompt tokens that a step of ``seconds`` without decoding rows can read."""
        a, _, c = self._weights
        return int(max(0.0, seconds - max(0.0, a)) / max(c, 1e-6))

    def learn(self, rows: int, tokens: int, seconds: float) -> None:
        """Take one measured step into account."""
        x = (1.0, float(rows), float(tokens))
        px = [sum(row[j] * x[j] for j in range(3)) for row in self._p]
        scale = _FORGET + sum(x[i] * px[i] for i in range(3))
        error = seconds - sum(w * v for w, v in zip(self._weights, x, strict=True))
        if abs(error) > 1.0:
            return
        gain = [value / scale for value in px]
        self._weights = [w + g * error for w, g in zip(self._weights, gain, strict=True)]
        self._p = [
            [min(1e3, (self._p[i][j] - gain[i] * px[j]) / _FORGET) for j in range(3)]
            for i in range(3)
        ]
