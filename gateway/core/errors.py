"""Every error of the product, in one tree.

::

    HeadwayError
    ├── ConfigError                 a setting or policy is wrong (exit 78)
    ├── StartError                  the process cannot start (its own exit code)
    │   ├── DataDirLocked           another process owns the data directory (75)
    │   ├── ServerBinaryMissing     no Valkey or Redis server to be found (78)
    │   └── PortInUse               the listening address is taken (69)
    ├── ClientError                 the caller's fault; sending the same again cannot help
    │   ├── InvalidRequest          400
    │   │   ├── MissingParameter
    │   │   ├── InvalidType
    │   │   └── ContextLengthExceeded
    │   ├── AuthenticationFailed    401
    │   ├── PermissionDenied        403
    │   ├── NotFound                404
    │   │   └── ModelNotFound
    │   ├── MethodNotAllowed        405
    │   ├── Conflict                409
    │   └── PayloadTooLarge         413
    ├── Busy                        429, with Retry-After
    │   ├── QueueFull
    │   └── RateLimited
    ├── Unavailable                 503, with Retry-After
    │   ├── StoreUnavailable
    │   ├── StoreFull
    │   └── Draining
    ├── BenchmarkFailed             a benchmark did not show what it must
    ├── ClientGone                  the caller closed the connection (499 in records, never sent)
    └── UpstreamError               a target failed us
        ├── UpstreamRefused         nothing was processed: refused connection, no pool place
        ├── UpstreamThrottled       429 or 503: nothing was processed
        ├── UpstreamRejected        other 4xx: the request's own fault, an answer and not a failure
        ├── UpstreamCredential      401, 402, 403: our key for the target is not accepted
        ├── UpstreamFailed          other 5xx, or an answer that is not what the API promises
        ├── UpstreamTimeout         connect, first byte, idle or total limit reached
        ├── OutcomeUnknown          the request went out, the connection ended without a status
        └── StreamInterrupted       the stream ended, stalled or erred after it had begun

Classes say what went wrong and never what to do. HTTP status codes are known to
``gateway.api.errors`` alone.
"""

from pathlib import Path
from typing import ClassVar

from gateway.core.rates import RateLimits

#: The ``code`` of a throttle that no wait ends: the account has nothing left.
INSUFFICIENT_QUOTA = "insufficient_quota"


class HeadwayError(Exception):
    """Root. ``message`` is safe to show to the caller: no secret, address or prompt in it."""

    type: ClassVar[str] = "server_error"
    code: str | None = None

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        if code is not None:
            self.code = code


class ConfigError(HeadwayError):
    """A setting or a policy file is wrong. ``str()`` starts with ``file:line`` when known."""

    exit_code: ClassVar[int] = 78

    def __init__(
        self, message: str, *, file: Path | str | None = None, line: int | None = None
    ) -> None:
        place = "" if file is None else f"{file}:{line}: " if line else f"{file}: "
        super().__init__(place + message)
        self.file = file
        self.line = line


class StartError(HeadwayError):
    """The process cannot start; one sentence and an exit code for the shell."""

    exit_code: ClassVar[int] = 70


class DataDirLocked(StartError):
    """Another process owns the data directory's queue."""

    exit_code = 75


class ServerBinaryMissing(StartError):
    """No Valkey or Redis server of a usable version was found."""

    exit_code = 78


class PortInUse(StartError):
    """The listening address is taken."""

    exit_code = 69


class ClientError(HeadwayError):
    """The caller's fault."""

    type = "invalid_request_error"


class InvalidRequest(ClientError):
    """The body, a parameter or a header is not acceptable."""


class MissingParameter(InvalidRequest):
    """A required member is absent; ``param`` names it."""

    code = "missing_required_parameter"


class InvalidType(InvalidRequest):
    """A member has the wrong JSON type; ``param`` names it."""

    code = "invalid_type"


class ContextLengthExceeded(InvalidRequest):
    """Prompt and wanted output do not fit the model's context."""

    code = "context_length_exceeded"


class AuthenticationFailed(ClientError):
    """No key, or one that is not known."""


class PermissionDenied(ClientError):
    """The key is known and may not do this."""

    type = "permission_error"
    code = "permission_denied"


class NotFound(ClientError):
    """No such object for this tenant, or no such path."""


class ModelNotFound(NotFound):
    """No target serves this model, or the key may not use it."""

    code = "model_not_found"


class MethodNotAllowed(ClientError):
    """The path exists, the method does not."""


class Conflict(ClientError):
    """The object's state does not allow this, and never will."""


class PayloadTooLarge(ClientError):
    """The body is over the documented limit."""


class Busy(HeadwayError):
    """Capacity or a limit; ``retry_after`` is in seconds."""

    type = "rate_limit_error"
    code = "rate_limit_exceeded"

    def __init__(self, message: str, *, retry_after: float, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after


class QueueFull(Busy):
    """The wait queue of a target and lane is full, or the wait took too long."""


class RateLimited(Busy):
    """A limit of the key or tenant is reached; the message names it."""


class Unavailable(HeadwayError):
    """A part of Headway cannot serve now; ``retry_after`` is in seconds."""

    def __init__(self, message: str, *, retry_after: float = 1.0, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after


class StoreUnavailable(Unavailable):
    """Redis does not answer."""

    code = "store_unavailable"


class StoreFull(Unavailable):
    """Redis memory or the disk is full; work already accepted goes on."""

    code = "store_full"


class Draining(Unavailable):
    """The process is shutting down."""

    code = "draining"


class BenchmarkFailed(HeadwayError):
    """A benchmark ran and did not show what it must; the message says what was found."""


class ClientGone(HeadwayError):
    """The caller closed the connection; nobody will read an answer."""

    code = "client_disconnected"


class UpstreamError(HeadwayError):
    """A target failed us.

    ``target`` is its policy name, ``body`` its answer in OpenAI's form, ``text`` one that is no
    JSON, without secrets (neither is for logs); ``retry_after`` in seconds.
    """

    code = "upstream_error"
    rates: RateLimits | None = None
    text: str = ""

    def __init__(
        self,
        message: str,
        *,
        target: str,
        status: int | None = None,
        body: bytes = b"",
        retry_after: float | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.target = target
        self.status = status
        self.body = body
        self.retry_after = retry_after


class UpstreamRefused(UpstreamError):
    """Nothing was processed: connection refused, unreachable, no pool place."""

    code = "connection_error"


class UpstreamThrottled(UpstreamError):
    """The target answered 429 or 503: nothing was processed."""

    code = "upstream_throttled"


class UpstreamRejected(UpstreamError):
    """The target answered another 4xx: the request's own fault."""

    type = "invalid_request_error"
    code = "upstream_rejected"


class UpstreamCredential(UpstreamError):
    """The target did not accept our credential."""

    code = "upstream_credential"


class UpstreamFailed(UpstreamError):
    """The target answered 5xx, or what is not the API's answer; ``made``: by work that it did."""

    code = "upstream_failed"
    made = False


class UpstreamTimeout(UpstreamError):
    """A limit was reached: the message names connect, first byte, idle or total."""

    code = "timeout"


class OutcomeUnknown(UpstreamError):
    """The request was sent and the connection ended without a status."""

    code = "upstream_outcome_unknown"


class StreamInterrupted(UpstreamError):
    """The stream had begun and did not end properly; ``cut``: its connection broke off."""

    cut: bool = False
    code = "upstream_stream_interrupted"
