"""The ``headway bench`` commands."""

import asyncio
import os
import signal

import pytest
from typer.testing import CliRunner

from gateway.bench import demo
from gateway.bench.checks import Check
from gateway.bench.cli import app
from gateway.core.errors import ConfigError
from tests.support.scripts import error
from tests.support.upstream import ScriptedUpstream


def test_load_reports_and_exits_by_success(upstream: ScriptedUpstream) -> None:
    """0 with figures; 1 when a call failed."""
    arguments = ["load", upstream.url, "--model", "m", "--calls", "4", "--max-tokens", "2"]
    good = CliRunner().invoke(app, arguments)
    assert good.exit_code == 0, good.output
    assert "output tok/s" in good.output
    upstream.enqueue(error(500))
    assert CliRunner().invoke(app, arguments).exit_code == 1
    upstream.refuse()
    none = CliRunner().invoke(app, arguments)
    assert (none.exit_code, "nan" in none.output) == (1, False)


@pytest.mark.parametrize("option", ["--port=65536", "--max-num-seqs=0"])
def test_an_engine_that_cannot_be_is_refused(option: str) -> None:
    """As wrong use of the command."""
    assert CliRunner().invoke(app, ["engine", option]).exit_code == 2


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 1)])
def test_the_demo_succeeds_only_when_all_holds(
    ok: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One failed check is a failed demo."""

    async def run_demo(_: object) -> list[Check]:
        return [Check("holds", "yes", ok=True), Check("may hold", "?", ok=ok)]

    monkeypatch.setattr(demo, "run_demo", run_demo)
    assert CliRunner().invoke(app, ["demo"]).exit_code == code


def test_an_interrupted_demo_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is no traceback."""

    async def run_demo(_: object) -> list[Check]:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)
        return []

    monkeypatch.setattr(demo, "run_demo", run_demo)
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 130
    assert "nothing is left running" in result.output


@pytest.mark.parametrize(
    "asked",
    [
        *(["engine", f"--scale={value}"] for value in ("nan", "inf", "-1", "0", "1e300")),
        *(["load", "http://h/v1", "--model", "m", f"--rate={value}"] for value in ("nan", "inf")),
        *(
            ["load", "http://h/v1", "--model", "m", f"--{name}={10**12}"]
            for name in ("calls", "concurrency", "max-tokens")
        ),
    ],
)
def test_numbers_that_cannot_be_meant_are_refused(asked: list[str]) -> None:
    """Before anything starts, with the option's name."""
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 2, found.output
    assert asked[-1].partition("=")[0] in found.stderr


def test_an_open_loop_has_no_use_for_a_closed_one_s_places() -> None:
    """Said before any call is made."""
    asked = ["load", "http://h/v1", "--model", "m", "--rate", "5", "--concurrency", "3"]
    with pytest.raises(ConfigError, match="with --rate there is no use for --concurrency"):
        CliRunner().invoke(app, asked, catch_exceptions=False)
