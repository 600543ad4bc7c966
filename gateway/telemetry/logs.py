"""Logging of a process: one line per event on stderr, never a prompt, answer or key."""

import logging
import sys
from types import TracebackType

from gateway.telemetry.duplicate_filter import DuplicateFilter

_FORMAT = "%(asctime)s %(levelname)s %(process)d %(name)s %(message)s"
# These write headers, addresses or whole requests at debug level.
_TALKATIVE = ("aiohttp", "asyncio", "httpx", "opentelemetry", "redis", "uvicorn.access")
_LONGEST_CHAIN = 5
_PLACES = 3

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class OneLine(logging.Formatter):
    r"""An event is one line: line ends inside it are written as ``\\n``.

    Of an exception the types, places and our own messages are kept. The text of foreign
    exceptions is dropped, for it may quote a request.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return super().format(record).replace("\r", "\\r").replace("\n", "\\n")

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802 - the base class's name
        """Return the chain from the cause to the effect, each with its innermost places."""
        chain: list[str] = []
        error = ei[1]
        while error is not None and len(chain) < _LONGEST_CHAIN:
            chain.append(f"{type(error).__name__}{_message(error)} at {_places(error)}")
            error = error.__cause__ or error.__context__
        return "; from ".join(chain)


def set_up_logs(level: str) -> None:
    """Send the log of this process to stderr, from ``level`` (debug, info, warning, error) on.

    A warning that repeats is written once a minute.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(_FORMAT))
    handler.addFilter(DuplicateFilter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def _message(error: BaseException) -> str:
    message = getattr(error, "message", None)
    return f" ({message})" if isinstance(message, str) and _is_ours(error) else ""


def _is_ours(error: BaseException) -> bool:
    return type(error).__module__.startswith("gateway.")


def _places(error: BaseException) -> str:
    places: list[str] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return " < ".join(reversed(places[-_PLACES:])) or "unknown"
