"""Which state may follow which."""

from gateway.schemas.batch import BatchStatus

AFTER: dict[BatchStatus, frozenset[BatchStatus]] = {
    BatchStatus.VALIDATING: frozenset(
        {BatchStatus.FAILED, BatchStatus.IN_PROGRESS, BatchStatus.CANCELLING}
    ),
    BatchStatus.IN_PROGRESS: frozenset({BatchStatus.FINALIZING, BatchStatus.CANCELLING}),
    BatchStatus.FINALIZING: frozenset(
        {BatchStatus.COMPLETED, BatchStatus.EXPIRED, BatchStatus.CANCELLING}
    ),
    BatchStatus.CANCELLING: frozenset({BatchStatus.CANCELLED}),
    BatchStatus.FAILED: frozenset(),
    BatchStatus.COMPLETED: frozenset(),
    BatchStatus.EXPIRED: frozenset(),
    BatchStatus.CANCELLED: frozenset(),
}


def before(status: BatchStatus) -> tuple[BatchStatus, ...]:
    """The states from which ``status`` may be entered."""
    return tuple(state for state, following in AFTER.items() if status in following)


def at(status: BatchStatus) -> str:
    """The member that says when ``status`` was entered, such as ``failed_at``."""
    return f"{status.value}_at"
