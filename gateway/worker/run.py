"""Puts a worker together and serves it until SIGTERM."""

import asyncio
import contextlib
import ctypes
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import uvicorn
import uvloop

from gateway.core.clock import SystemClock
from gateway.core.errors import ConfigError, StartError
from gateway.core.quick_server import QuickServer, bound
from gateway.worker.device.runner import PagedRunner
from gateway.worker.engine import Engine, Runner
from gateway.worker.gguf import GGUFFile, packaged_model
from gateway.worker.model_runner import ModelRunner
from gateway.worker.models.llama import Llama
from gateway.worker.models.loading import llama_from_gguf, on_device, tiny_llama
from gateway.worker.models.shapes import PREFIX, random_llama, shape_named
from gateway.worker.options import WorkerOptions
from gateway.worker.scheduler import Scheduler
from gateway.worker.sequence import Event
from gateway.worker.server import WorkerApp
from gateway.worker.tokenizer import BPEVocabulary, ByteVocabulary, Vocabulary, WordVocabulary
from gateway.worker.weights import bfloat16_is_fast

log = logging.getLogger(__name__)

_TINY = "tiny"
_GPU = "cuda"
# Each launch gives the interpreter away: the engine gets it back from the event loop this soon.
_TURN_SECONDS = 0.0002


def run_worker(options: WorkerOptions) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises PortInUse, ConfigError for an unusable model, StartError when the engine died.
    """
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    listener = bound(options.host, options.port, "the worker")
    model, vocabulary = load_model(options)
    with listener:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            lived = runner.run(_serve(options, listener, model, vocabulary))
        if not lived:
            raise StartError("the worker's engine failed: the log has the reason")


def load_model(options: WorkerOptions) -> tuple[Llama, Vocabulary]:
    """The model, on its device, and its tokenizer. Raises ConfigError."""
    device = device_of(options.device)
    if options.model is not None and options.model.startswith(PREFIX):
        shape, inner = shape_named(options.model.removeprefix(PREFIX), options.context)
        fast = device == _GPU or bfloat16_is_fast()
        dtype = torch.bfloat16 if fast else torch.float32
        return random_llama(shape, inner, device, dtype), WordVocabulary(shape.vocab)
    if options.model == _TINY:
        return on_device(tiny_llama(options.context), device), ByteVocabulary()
    file = GGUFFile(Path(options.model) if options.model else packaged_model())
    vocabulary = BPEVocabulary(file.meta)
    if device == _GPU:
        return on_device(llama_from_gguf(file, dtype=torch.bfloat16), device), vocabulary
    return llama_from_gguf(file), vocabulary


def device_of(name: str) -> str:
    """``cpu`` or ``cuda``. Raises ConfigError when a GPU is asked for and none is seen."""
    seen = torch.cuda.is_available()
    if name == _GPU and not seen:
        raise ConfigError("device: torch sees no GPU here; use auto or cpu")
    if name == "auto":
        return _GPU if seen else "cpu"
    return name


def build_engine(
    options: WorkerOptions,
    model: Llama,
    vocabulary: Vocabulary,
    deliver: Callable[[list[Event]], None],
    on_death: Callable[[], object],
) -> Engine:
    """An engine, not started; on a GPU with the runner made for it."""
    room = None
    runner: Runner
    if model.embedding.device.type == _GPU:
        runner = PagedRunner(model, options.rows, options.context, options.faults)
        room = runner.room
    else:
        runner = ModelRunner(model, options.rows, options.context, options.faults)
    scheduler = Scheduler(
        options.rows,
        options.reserved_rows,
        itl_target=options.itl_target,
        prefill_chunk=options.prefill_chunk,
        room=room,
    )
    return Engine(
        runner, scheduler, vocabulary, deliver, itl_target=options.itl_target, on_death=on_death
    )


def deliver_on(loop: asyncio.AbstractEventLoop) -> Callable[[list[Event]], None]:
    """Hands the events of a step to the loop in one call."""

    def hand_out(events: list[Event]) -> None:
        for event in events:
            event.sequence.sink(event)

    def deliver(events: list[Event]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(hand_out, events)

    return deliver


async def _serve(
    options: WorkerOptions, listener: socket.socket, model: Llama, vocabulary: Vocabulary
) -> bool:
    """Serve; whether the engine lived to the end."""
    loop = asyncio.get_running_loop()
    died = asyncio.Event()
    engine = build_engine(
        options,
        model,
        vocabulary,
        deliver_on(loop),
        on_death=lambda: loop.call_soon_threadsafe(died.set),
    )
    app = WorkerApp(engine, vocabulary, options, SystemClock()).app
    level = "warning" if options.log_level == "info" else options.log_level
    config = uvicorn.Config(
        app,
        log_level=level,
        log_config=None,
        access_log=False,
        lifespan="off",
        http="httptools",
    )
    server = QuickServer(config)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.leave)
    _settle_memory()
    if model.embedding.device.type == _GPU:
        sys.setswitchinterval(_TURN_SECONDS)
    engine.start()
    host, port = listener.getsockname()[:2]
    log.info("%s is served at http://%s:%d/v1", options.served_model, options.host or host, port)
    watching = asyncio.create_task(_leave_when(died, server))
    try:
        await server.serve(sockets=[listener])
    finally:
        watching.cancel()
        engine.stop()
    return not died.is_set()


def _settle_memory() -> None:
    """Give back what loading used, and keep what stays out of later collections."""
    gc.collect()
    gc.freeze()
    with contextlib.suppress(AttributeError, OSError):  # where the C library cannot
        ctypes.CDLL(None).malloc_trim(0)


async def _leave_when(died: asyncio.Event, server: "QuickServer") -> None:
    await died.wait()
    server.leave()
