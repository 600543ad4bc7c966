"""How many of a target's calls may be retries."""

_RESERVE = 10.0


class RetryBudget:
    """A bucket: each call puts its share in, each retry takes one out. It begins full."""

    __slots__ = ("_share", "_tokens")

    def __init__(self, share: float) -> None:
        self._share = share
        self._tokens = _RESERVE

    def called(self) -> None:
        """A call was made that is no retry."""
        if self._tokens < _RESERVE:
            self._tokens = min(_RESERVE, self._tokens + self._share)

    def take(self) -> bool:
        """Whether one more retry is allowed; if so, it is counted."""
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
