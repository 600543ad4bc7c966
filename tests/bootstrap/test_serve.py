"""``headway serve`` as a process: start, refusals, signals, and nothing left behind."""

import os
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import orjson
import psutil
import pytest

from gateway.metering.record import CallStatus
from gateway.metering.recovery import read_records
from tests.support.answers import Pace
from tests.support.gateway import chat_body
from tests.support.machine import slowness
from tests.support.scripts import Sse, chat_chunk, never
from tests.support.serve import (
    COMMAND,
    KEY,
    clean_environment,
    headway,
    headway_command,
    one_target,
    start_headway,
    wait_for,
)
from tests.support.upstream import ScriptedUpstream


def _command(tmp_path: Path, upstream: ScriptedUpstream, *more: str) -> list[str]:
    policy = tmp_path / "four.yaml"
    policy.write_text(f"targets:\n  up:\n    base_url: {upstream.url}\n    models: [m]\n")
    return ["serve", "--policy", str(policy), "--data-dir", str(tmp_path / "data"), *more]


def test_the_first_answer_comes_within_two_seconds(
    tmp_path: Path, upstream: ScriptedUpstream
) -> None:
    """From the start of the process to an answer of the target."""
    started = time.monotonic()
    with headway(tmp_path, one_target(upstream.url)) as running:
        with running.client() as client:
            body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            assert client.post("/chat/completions", json=body).status_code == 200
        assert time.monotonic() - started < 2 * slowness()
        assert psutil.Process(running.pid).memory_info().rss < 120 * 2**20


def test_a_port_in_use_is_one_sentence(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """Exit code 69, one line on stderr, nothing started."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = headway_command(_command(tmp_path, upstream, "--port", port))
    assert ended.returncode == 69
    assert ended.stderr.count("\n") == 1
    assert f"127.0.0.1:{port} is in use" in ended.stderr
    assert not (tmp_path / "data" / "queue").exists()


def test_a_data_directory_has_one_owner(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """A second gateway on the same directory ends with 75 and one sentence."""
    with headway(tmp_path, one_target(upstream.url)) as running:
        ended = headway_command(
            ["serve", "--port", "0", "--data-dir", str(running.data_dir)], timeout=40
        )
        assert ended.returncode == 75
        assert "Traceback" not in ended.stderr


def test_a_wrong_server_binary_is_one_sentence(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """No usable queue server: exit 78, and no stand-in is used."""
    env = {"HEADWAY_SERVER_BIN": str(tmp_path / "no-such-server")}
    ended = headway_command(_command(tmp_path, upstream, "--port", "0"), env)
    assert ended.returncode == 78
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing_behind(
    tmp_path: Path, upstream: ScriptedUpstream, number: signal.Signals
) -> None:
    """Ctrl-C and SIGTERM end it with 0, and every child with it."""
    running = start_headway(tmp_path, one_target(upstream.url))
    wait_for(lambda: {"dispatch", "queue"} <= set(running.children()))
    family = psutil.Process(running.pid).children(recursive=True)
    os.kill(running.pid, number)
    assert running.process.wait(15) == 0
    assert not psutil.wait_procs(family, timeout=5)[1]


def test_kill_9_leaves_nothing_behind(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """The children follow their parent however it ends."""
    running = start_headway(tmp_path, one_target(upstream.url))
    wait_for(lambda: {"dispatch", "queue"} <= set(running.children()))
    family = psutil.Process(running.pid).children(recursive=True)
    running.process.kill()
    running.process.wait()
    assert not psutil.wait_procs(family, timeout=10)[1]


def test_dep_01_sigterm_lets_streams_finish(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """Scaled to a quarter: ready turns 503, new calls get 503, the stream ends with [DONE]."""
    upstream.pace = Pace(token=0.1)
    running = start_headway(tmp_path, one_target(upstream.url))
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    with (
        running.client() as client,
        client.stream("POST", "/chat/completions", json={**body, "max_tokens": 20}) as stream,
    ):
        lines = stream.iter_lines()
        next(lines)
        os.kill(running.pid, signal.SIGTERM)
        wait_for(lambda: httpx.get(running.root + "/readyz").status_code == 503, 5)
        assert httpx.get(running.root + "/livez").status_code == 200
        refused = httpx.post(
            running.base_url + "/chat/completions",
            json=body,
            headers={"authorization": f"Bearer {KEY}"},
        )
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "draining"
        assert refused.headers["x-request-id"]
        assert [line for line in lines if line][-1] == "data: [DONE]"
    assert running.process.wait(15) == 0


def test_streams_past_the_grace_time_end_with_an_error(
    tmp_path: Path, upstream: ScriptedUpstream
) -> None:
    """One error event and no [DONE]; a call without an answer yet gets 503; both are recorded."""
    upstream.on("streamed", Sse([chat_chunk("a")], end="hang"))
    upstream.on("plain", never())
    with (
        headway(tmp_path, one_target(upstream.url), {"HEADWAY_GRACE_SECONDS": "0.3"}) as running,
        running.client() as client,
        ThreadPoolExecutor() as pool,
    ):
        plain = pool.submit(client.post, "/chat/completions", json=chat_body("plain"))
        upstream.wait(lambda: upstream.calls("plain"))
        body = chat_body("streamed", stream=True)
        with client.stream("POST", "/chat/completions", json=body) as stream:
            lines = (line for line in stream.iter_lines() if line)
            assert '"a"' in next(lines)
            os.kill(running.pid, signal.SIGTERM)
            rest = list(lines)
        assert len(rest) == 1
        assert orjson.loads(rest[0].removeprefix("data: "))["error"]["code"] == "draining"
        assert plain.result(5).status_code == 503
        assert plain.result().json()["error"]["code"] == "draining"
        assert running.process.wait(15) == 0
    records = {r.outcome.http_status: r for r in read_records(running.data_dir / "journal")}
    assert {r.outcome.status for r in records.values()} == {CallStatus.INTERRUPTED}
    assert set(records) == {200, 503}
    assert records[200].outcome.usage.completion >= 1


def test_dep_04_live_is_not_ready(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """Without queue server and target: live 200, ready 503 with the reason, both at once."""
    url = upstream.url
    env = {"HEADWAY_REDIS_URL": "redis://127.0.0.1:1", "HEADWAY_DISPATCHERS": "0"}
    upstream.refuse()
    with headway(tmp_path, one_target(url), env) as running, httpx.Client() as client:
        client.get(running.root + "/livez")
        started = time.monotonic()
        assert client.get(running.root + "/livez").status_code == 200
        ready = client.get(running.root + "/readyz")
        assert time.monotonic() - started < 0.2 * slowness()
        assert ready.status_code == 503
        assert ready.json()["checks"]["store"] == "failing"
        assert ready.json()["checks"]["targets"] == "failing"
        upstream.start()
        wait_for(lambda: client.get(running.root + "/readyz").status_code == 200, 5)
        assert client.get(running.root + "/readyz").json()["status"] == "degraded"


def test_a_second_gateway_on_the_default_port_hears_of_the_owner(
    tmp_path: Path, upstream: ScriptedUpstream
) -> None:
    """Port and directory are both taken: another --port would not help, so 75 and that sentence."""
    with headway(tmp_path, one_target(upstream.url)) as running:
        port = running.root.rpartition(":")[2]
        ended = headway_command(
            ["serve", "--port", port, "--data-dir", str(running.data_dir)], timeout=40
        )
    assert ended.returncode == 75
    assert "owns the data directory" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_gateways_that_share_a_directory(
    tmp_path: Path, upstream: ScriptedUpstream, store_url: str
) -> None:
    """The first stays announced whatever the second does."""
    env = {"HEADWAY_REDIS_URL": store_url, "HEADWAY_DISPATCHERS": "0"}
    with headway(tmp_path, one_target(upstream.url), env) as running:
        known = (running.data_dir / "gateway.json").read_text()
        command = [*COMMAND, "serve", "--port", "0", "--data-dir", str(running.data_dir)]
        command += ["--policy", str(running.data_dir.parent / "policy.yaml")]
        with subprocess.Popen(
            command, env={**clean_environment(), **env}, stdout=subprocess.PIPE, text=True
        ) as second:
            assert second.stdout is not None
            address = second.stdout.readline().split()[-1].removesuffix("/v1")
            wait_for(lambda: httpx.get(address + "/livez").is_success)
            assert (running.data_dir / "gateway.json").read_text() == known
            second.terminate()
            assert second.wait(20) == 0
        assert (running.data_dir / "gateway.json").read_text() == known


@pytest.mark.parametrize(
    ("arguments", "env", "said"),
    [
        ([], {"HEADWAY_REDIS_URL": "nonsense"}, "HEADWAY_REDIS_URL: must be a redis://"),
        (["--data-dir", "file"], {}, "is no directory"),
        (["--data-dir", "file/below"], {}, "cannot be made"),
        ([], {"HEADWAY_DATA_DIR": ""}, "HEADWAY_DATA_DIR: is set to an empty string"),
        (["--port", "99999"], {}, "--port: "),
        (["--log-level", "x"], {}, "--log-level: "),
    ],
)
def test_what_cannot_start_is_one_sentence(
    tmp_path: Path, arguments: list[str], env: dict[str, str], said: str
) -> None:
    """Exit 78 before anything is started."""
    (tmp_path / "file").touch()
    given = [str(tmp_path / a) if a.startswith("file") else a for a in arguments]
    where = {"HOME": str(tmp_path), "HEADWAY_PORT": "0"}
    ended = headway_command(["serve", *given], {**where, **env})
    assert ended.returncode == 78
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
