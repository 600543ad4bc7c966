"""The model server of a round, as a process: answers and usage follow from the request alone.

Each answer is noted in a log before its end is sent, so whatever was delivered is in the log. It
may be killed at any time.
"""

import argparse
import asyncio
import json
import os
import signal
import threading

from tests.support.answers import Shape, stream_events, usage_for
from tests.support.exchange import Exchange
from tests.support.upstream import ScriptedUpstream

_CHAT = Shape(chat=True)


class LoggedAnswers:
    """Streams one token every ``pace`` seconds."""

    def __init__(self, log: str, pace: float) -> None:
        self._descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._pace = pace

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one chat call."""
        body = exchange.seen.json
        *first, last = stream_events(_CHAT, body)
        exchange.head(headers={"content-type": "text/event-stream"})
        for event in first:
            exchange.chunk(_frame(json.dumps(event)))
            await asyncio.sleep(self._pace)
        usage = usage_for(_CHAT, body)
        prompt, completion = usage["prompt_tokens"], usage["completion_tokens"]
        text = body["messages"][0]["content"]
        note = {"row": text.split(" ")[0], "prompt": prompt, "completion": completion}
        os.write(self._descriptor, json.dumps(note).encode() + b"\n")
        exchange.chunk(_frame(json.dumps(last)))
        exchange.chunk(_frame("[DONE]"))
        exchange.end()


def _frame(text: str) -> bytes:
    return b"data: " + text.encode() + b"\n\n"


def main() -> None:
    """Serve until SIGTERM."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--port", type=int, required=True)
    arguments.add_argument("--log", required=True)
    arguments.add_argument("--pace", type=float, required=True)
    given = arguments.parse_args()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    upstream = ScriptedUpstream(models=["m", "n"])
    upstream.port = given.port
    upstream.on(lambda seen: True, LoggedAnswers(given.log, given.pace))
    upstream.start()
    ended.wait()
    upstream.stop()


if __name__ == "__main__":
    main()
