"""``headway targets``: how each target is, what runs there, which engine flags would suit it."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.tables import show
from gateway.core.settings import load_settings

_COLUMNS = ("target", "state", "interactive", "elastic", "batch", "row cap", "gate", "TTFT", "gap")


def targets(
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for each.")] = False,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="The gateway's data directory.")
    ] = None,
) -> None:
    """Each target: its state, what is in flight, caps found, latencies, advice for its engine."""
    from gateway.bootstrap.targets_page import targets_page

    found = asyncio.run(targets_page(load_settings(data_dir=data_dir)))
    if as_json:
        for target in found:
            typer.echo(json.dumps(target))
        return
    show(_COLUMNS, [_row(target) for target in found])
    for target in found:
        for line in _lines(target):
            typer.echo(f"{target['target']}: {line}")


def _row(target: dict[str, Any]) -> list[str]:
    lanes, caps = target["lanes"], target["caps"] or {}
    prompts = caps.get("prompts")
    return [
        target["target"],
        target["state"],
        _calls(lanes.get("interactive")),
        _calls(lanes.get("elastic")),
        str(lanes["batch"]["running"]) if "batch" in lanes else "-",
        str(caps.get("rows", "-")),
        "-" if prompts is None else str(prompts),
        _ms(caps.get("ttft")),
        _ms(caps.get("gap")),
    ]


def _calls(counts: dict[str, int] | None) -> str:
    if counts is None:
        return "-"
    waiting = f" + {counts['waiting']} wait" if counts["waiting"] else ""
    return f"{counts['running']}{waiting}"


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1000 * seconds:.0f} ms"


def _lines(target: dict[str, Any]) -> Iterator[str]:
    if (late := target["late_cost"]) is not None:
        end = "; used up" if late["exhausted"] else ""
        yield f"late work holds {late['held']:g} of {late['max_cost']:g}{end}"
    if (advice := target["advice"]) is not None:
        step, longest = advice["step_ms"], advice["longest_step_ms"]
        yield (
            f"step {step['a']:.2f} ms + {step['b']:.3f} a row + {step['c']:.6f} a cached token + "
            f"{step['d']:.4f} a prompt token; the longest now {longest['now']:.0f} ms"
        )
        yield (
            f"for at most {advice['itl_target_ms']:g} ms: {advice['flags']}; "
            f"then {longest['then']:.0f} ms, for {advice['offline_cost']:.0%} of what it does "
            "offline alone"
        )
        if not advice["reached"]:
            yield "no flags reach the target: the engine is too slow for it"
