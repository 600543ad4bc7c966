"""What a log may say."""

import logging
from collections.abc import Iterator

import pytest

from gateway.core.errors import UpstreamFailed
from gateway.telemetry.logs import set_up_logs

log = logging.getLogger("gateway.test")


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def _fail() -> None:
    try:
        int("CANARY-P")
    except ValueError as error:
        raise UpstreamFailed("bad answer", target="up", body=b"CANARY-A") from error


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What reached stderr."""
    return capsys.readouterr().err.splitlines()


def test_an_event_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A line end in a message cannot forge a second event."""
    set_up_logs("info")
    log.info("first\nsecond\r")
    (line,) = lines(capsys)
    assert line.endswith("first\\nsecond\\r")
    assert " INFO " in line


def test_the_level_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """Below it nothing is said; clients that print requests stay quiet even at debug."""
    set_up_logs("debug")
    log.debug("said")
    logging.getLogger("httpx").debug("GET /?key=SECRET")
    set_up_logs("error")
    log.warning("not said")
    assert [line.split()[-1] for line in lines(capsys)] == ["said"]


def test_sec_15_text_of_foreign_errors_is_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    """They may quote a prompt or a body; types, places and our own messages stay."""
    set_up_logs("debug")
    try:
        _fail()
    except UpstreamFailed:
        log.exception("a call failed")
    (line,) = lines(capsys)
    assert "CANARY" not in line
    assert "UpstreamFailed (bad answer) at" in line
    assert "from ValueError at" in line
    assert "test_logs.py:" in line
