"""What is said at start."""

import asyncio
from pathlib import Path

import pytest
from pydantic import SecretStr

from gateway.bootstrap.greeting import greet, say_ready
from gateway.core.settings import Settings
from tests.support.ports import free_port


def test_a_key_is_shown_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """When it is made; later only where it is."""
    settings = Settings(data_dir=tmp_path)
    greet(settings, "http://h/v1", "hw-new")
    assert "hw-new" in capsys.readouterr().out
    greet(settings, "http://h/v1", None)
    assert f"key: in {tmp_path / 'api_key'}" in capsys.readouterr().out
    greet(Settings(data_dir=tmp_path, api_key=SecretStr("hw-set")), "http://h/v1", None)
    shown = capsys.readouterr().out
    assert "http://h/v1" in shown
    assert "HEADWAY_API_KEY" in shown
    assert "hw-set" not in shown


async def test_a_worker_is_ready_when_it_answers(capsys: pytest.CaptureFixture[str]) -> None:
    """Not before, and said once."""
    port = free_port()
    saying = asyncio.create_task(say_ready({"small": f"http://127.0.0.1:{port}/v1"}))
    await asyncio.sleep(0.3)
    assert capsys.readouterr().out == ""
    server = await asyncio.start_server(lambda _, w: w.close(), "127.0.0.1", port)
    async with asyncio.timeout(5), server:
        await saying
    assert capsys.readouterr().out == "ready: the model of small answers\n"
