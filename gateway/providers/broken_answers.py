"""The errors of a target whose answer, or stream of events, cannot be used."""

from gateway.core.errors import StreamInterrupted, UpstreamFailed
from gateway.core.large_json import TooManyValues
from gateway.core.nesting import is_deep

#: Answers that cannot be passed on, and would be the same if they were asked for again.
TOO_DEEP = "answer_too_deep"
TOO_LONG = "answer_too_long"
UNUSABLE = frozenset({TOO_DEEP, TOO_LONG})
#: Bytes that an event may have.
LONGEST_EVENT = 16 * 2**20
#: Objects and arrays in an event: 2,300 tokens of a whole response, each with 20 likely ones, have
#: as many. Reading them holds up all other calls for some hundredths of a second.
MOST_PARTS = 100_000


def ended_early(target: str) -> StreamInterrupted:
    """The body or the stream ended before its proper end."""
    return StreamInterrupted("The target ended its answer early.", target=target)


def malformed_stream(target: str) -> UpstreamFailed:
    """An event is not one of the API's."""
    return _made("The target's event stream is malformed.", target)


def malformed_answer(target: str) -> UpstreamFailed:
    """Members of an answer are of other types than the API's."""
    return _made("The target's answer is malformed.", target)


def endless_event(target: str) -> UpstreamFailed:
    """An event grows beyond LONGEST_EVENT."""
    return _made(f"The target's stream has an event of more than {LONGEST_EVENT} bytes.", target)


def too_long(most: int, target: str) -> UpstreamFailed:
    """A whole answer has more than ``most`` bytes."""
    message = f"The target's answer has more than {most} bytes."
    return UpstreamFailed(message, target=target, code=TOO_LONG)


def unreadable_event(data: bytes, target: str, reason: Exception) -> UpstreamFailed:
    """``data`` of an event is no JSON that can be written again, or not an event of the API."""
    if isinstance(reason, TooManyValues):
        message = f"The target's stream has an event of more than {MOST_PARTS} objects and arrays."
        return _made(message, target)
    return _too_deep(target) if is_deep(data) else malformed_stream(target)


def unreadable_answer(data: bytes, target: str) -> UpstreamFailed:
    """``data`` is no JSON object that can be written again. A page of HTML is not even meant so."""
    if is_deep(data):
        return _too_deep(target)
    error = _made("The target's answer is not a JSON object.", target)
    error.made = data.lstrip().startswith((b"{", b"["))
    return error


def _too_deep(target: str) -> UpstreamFailed:
    message = "The target's answer is nested too deeply."
    return UpstreamFailed(message, target=target, code=TOO_DEEP)


def _made(message: str, target: str) -> UpstreamFailed:
    """The failure of a target that did its work."""
    error = UpstreamFailed(message, target=target)
    error.made = True
    return error
