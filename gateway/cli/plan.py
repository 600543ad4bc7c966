"""``headway plan``: how many workers a job needs, what it costs, and when it ends."""

import json
import math
import re
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.core.errors import ConfigError

if TYPE_CHECKING:
    from gateway.bench.planning.plan import Interactive
    from gateway.simulator.profile import EngineProfile

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "": 1}
# Of the answers in a chat: a few are long.
_CHAT_CV = 1.27
_ENGINE = "Engine"
_CALLS = "Interactive calls on the same workers"


Model = Annotated[
    str,
    typer.Option(
        help="Name, or layers,kv_heads,head_dim,params in billions,dtype.", rich_help_panel=_ENGINE
    ),
]
Gpus = Annotated[int, typer.Option(min=1, help="GPUs that share it.", rich_help_panel=_ENGINE)]
Profile = Annotated[
    str | None, typer.Option(help="A measured engine by name.", rich_help_panel=_ENGINE)
]
Fit = Annotated[str | None, typer.Option(help="Measured a,b,c,h in ms.", rich_help_panel=_ENGINE)]
Price = Annotated[
    float | None, typer.Option(min=0, help="Per worker, hour.", rich_help_panel=_ENGINE)
]
Slots = Annotated[int, typer.Option(min=1, help="Sequence slots.", rich_help_panel=_ENGINE)]
Budget = Annotated[int, typer.Option(min=1, help="Tokens of a step.", rich_help_panel=_ENGINE)]
Rate = Annotated[
    float | None, typer.Option(min=0, help="Calls per second.", rich_help_panel=_CALLS)
]
Mean = Annotated[float, typer.Option(min=1, help="Mean tokens.", rich_help_panel=_CALLS)]
Trace = Annotated[Path | None, typer.Option(help="CSV or JSONL.", rich_help_panel=_CALLS)]


def plan(
    mean_in: Annotated[float, typer.Option("--in", min=1, help="Mean prompt tokens.")],
    mean_out: Annotated[float, typer.Option("--out", min=1, help="Mean output tokens.")],
    items: Annotated[int | None, typer.Option(min=1, help="Items of the job.")] = None,
    tokens: Annotated[float | None, typer.Option(min=1, help="Or tokens, in and out.")] = None,
    out_cv: Annotated[float, typer.Option(min=0, help="Variation of output lengths.")] = 0.5,
    deadline: Annotated[str | None, typer.Option(help="Such as 90m, 8h or 1d.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Ask about so many.")] = None,
    model: Model = "llama-3-8b",
    gpu: Annotated[str, typer.Option(help="GPU.", rich_help_panel=_ENGINE)] = "a100-80",
    gpus_per_worker: Gpus = 1,
    profile: Profile = None,
    fit: Fit = None,
    price: Price = None,
    max_num_seqs: Slots = 256,
    max_num_batched_tokens: Budget = 2048,
    interactive_rate: Rate = None,
    interactive_in: Mean = 1180,
    interactive_out: Mean = 252,
    interactive_trace: Trace = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Plan a job: workers, batch size, what it is bound by, finish and cost."""
    from gateway.bench.planning import report
    from gateway.bench.planning.plan import Job, make_plan
    from gateway.bench.planning.steady import Shape

    if (items is None) == (tokens is None):
        raise ConfigError("Give either --items or --tokens.")
    shape = Shape(mean_in, mean_out, out_cv)
    count = items or _count(tokens or 0, shape.prompt + shape.output)
    engine = _engine(model, gpu, gpus_per_worker, profile, fit)
    engine = engine.with_flags(max_num_seqs, max_num_batched_tokens).priced(price)
    found = make_plan(
        engine,
        Job(count, shape, _seconds(deadline)),
        _interactive(interactive_rate, interactive_in, interactive_out, interactive_trace),
        workers,
    )
    typer.echo(json.dumps(report.as_json(found), indent=2) if as_json else report.as_text(found))


def _engine(
    model: str, gpu: str, gpus: int, profile: str | None, fit: str | None
) -> "EngineProfile":
    from gateway.bench.planning.hardware import GPUS, measured, model_of, named, roofline
    from gateway.simulator.profile import profile_named

    if profile is not None:
        engine = profile_named(profile)
    else:
        engine = roofline(model_of(model), named(GPUS, gpu, "GPU"), gpus, name=f"{model} on {gpu}")
    return engine if fit is None else measured(fit, engine)


def _interactive(
    rate: float | None, mean_in: float, mean_out: float, trace: Path | None
) -> "Interactive | None":
    from gateway.bench.planning.plan import Interactive
    from gateway.bench.planning.steady import Shape
    from gateway.bench.workload.trace import rate_of, read_trace

    shape = Shape(mean_in, mean_out, _CHAT_CV)
    if trace is not None:
        calls = read_trace(trace)
        outputs = [call.output for call in calls]
        mean_in, mean_out = fmean(call.prompt for call in calls), fmean(outputs)
        shape = Shape(mean_in, mean_out, pstdev(outputs) / mean_out)
        rate = rate_of(calls) if rate is None else rate
    return Interactive(rate, shape) if rate else None


def _count(tokens: float, each: float) -> int:
    if not math.isfinite(tokens):
        raise ConfigError("Tokens are a number.")
    return max(1, round(tokens / each))


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip())
    if found is None:
        raise ConfigError(f"{text!r} is no time: write 90m, 8h or 1d.")
    return float(found[1]) * _UNITS[found[2]]
