"""``headway worker`` as a process."""

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import torch

from gateway.core.errors import ConfigError, PortInUse
from gateway.worker.run import device_of, load_model, run_worker
from tests.support.ports import free_port
from tests.support.worker import MODEL, options, prompt_body

START = """
from pathlib import Path
from gateway.worker.run import run_worker
from tests.support.worker import options
run_worker(options(port={port}, request_log=Path({log!r})))
"""


def test_it_serves_notes_and_stops(tmp_path: Path) -> None:
    """Answers over HTTP, one log line per finished request, gone at SIGTERM even mid-stream."""
    port, log = free_port(), tmp_path / "requests.jsonl"
    code = START.format(port=port, log=str(log))
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            _wait(client)
            body, headers = prompt_body("a"), {"x-request-id": "req_7"}
            answer = client.post("/v1/completions", json=body, headers=headers).json()
            assert answer["model"] == MODEL
            entry = json.loads(log.read_text())
            assert (entry["id"], entry["prompt_tokens"]) == ("req_7", 1)
            assert entry["completion_tokens"] == answer["usage"]["completion_tokens"]
            long = {**body, "stream": True, "max_tokens": 480, "n": 8, "ignore_eos": True}
            with client.stream("POST", "/v1/completions", json=long) as stream:
                next(stream.iter_lines())
                process.send_signal(signal.SIGTERM)
                assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()


def test_a_taken_port_is_said_in_a_sentence() -> None:
    """Before the model is loaded."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(PortInUse, match="cannot listen"):
            run_worker(options(port=taken.getsockname()[1]))


def test_a_shape_is_served_with_random_weights() -> None:
    """By its name alone, with a tokenizer for it."""
    model, vocabulary = load_model(options(model="shape:tiny"))
    assert model.shape.vocab == vocabulary.size
    assert model.shape.context == options().context


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_processor_is_used() -> None:
    """Unless a GPU was asked for: that is refused."""
    assert device_of("auto") == "cpu"
    with pytest.raises(ConfigError, match="no GPU"):
        device_of("cuda")


def _wait(client: httpx.Client) -> None:
    for _ in range(400):
        try:
            client.get("/health")
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the worker did not start")
