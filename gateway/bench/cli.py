"""``headway bench``: the demo, and load for any OpenAI-compatible server."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gateway.bench.numbers import MOST, MOST_CALLS, a_number
from gateway.core.errors import ConfigError
from gateway.core.load import ITL_TARGET, LONGEST_GAP

app = typer.Typer(help="Measurements.", no_args_is_help=True, add_completion=False)

INTERRUPTED = 130


Rate = Annotated[
    float,
    typer.Option(min=0.01, max=10_000, callback=a_number, help="Interactive calls per second."),
]
Seconds = Annotated[
    float, typer.Option(min=40, max=86_400, callback=a_number, help="Engine time of a run.")
]
Slices = Annotated[int, typer.Option(min=1, max=1000, help="Repeats with other calls.")]
Engines = Annotated[int, typer.Option(min=1, max=64, help="So many of them.")]
Trace = Annotated[Path | None, typer.Option(help="Calls from a CSV or JSONL file.")]
Trials = Annotated[bool, typer.Option(help="Also wrong starts, changes, deadlines.")]
Targets = Annotated[
    list[str] | None, typer.Option(help="Running servers instead: addresses ending in /v1.")
]
Key = Annotated[str, typer.Option(envvar="HEADWAY_API_KEY", help="Its key.")]
Flood = Annotated[int, typer.Option(min=1, max=MOST, help="Rows in flight of the naive arm.")]
Cap = Annotated[int, typer.Option(min=1, max=MOST, help="Rows of the static cap's arm.")]
Gap = Annotated[
    float,
    typer.Option(min=0.001, max=LONGEST_GAP, callback=a_number, help="Seconds between tokens."),
]
Share = Annotated[
    float | None,
    typer.Option(
        min=0.01, max=0.95, callback=a_number, help="Of what the target does: sets --rate."
    ),
]
SloTimes = Annotated[
    float | None,
    typer.Option(
        "--slo",
        min=1,
        max=1000,
        callback=a_number,
        help="So many times p95 alone, not 500 and 50 ms.",
    ),
]
Mean = Annotated[str | None, typer.Option(help="Mean tokens IN:OUT; the trace's if not given.")]
Price = Annotated[
    float | None,
    typer.Option(min=0, max=1e9, callback=a_number, help="Of an engine for an hour."),
]
ReportFile = Annotated[Path | None, typer.Option(help="Write the JSON there.")]
SequenceSlots = Annotated[
    int | None, typer.Option(min=1, max=MOST, help="The engine's sequence slots.")
]
StepTokens = Annotated[
    int | None, typer.Option(min=1, max=MOST, help="Tokens of one of its steps.")
]
Profile = Annotated[
    str, typer.Option(help="The simulated engine; of a running one, price and cache for advice.")
]
Scale = Annotated[
    float, typer.Option(min=0.001, max=1000, callback=a_number, help="Times real speed.")
]
Calls = Annotated[int, typer.Option(min=1, max=MOST_CALLS, help="Streamed chat calls to make.")]
AtOnce = Annotated[int, typer.Option(min=1, max=MOST, help="Closed loop: calls that run at once.")]
OpenRate = Annotated[
    float | None,
    typer.Option(
        min=0.001, max=1_000_000, callback=a_number, help="Open loop instead: calls per second."
    ),
]
Answer = Annotated[int, typer.Option(min=1, max=MOST, help="Output tokens of each call.")]
Way = Annotated[str | None, typer.Option(help="Also by way of a gateway before them: its /v1.")]


# Options of `coserve` that say something only of running servers, or only of simulated ones.
_LIVE = (
    *("model", "api_key", "priority", "gateway", "gateway_model", "gateway_key", "flood", "cap"),
    *("share", "slo", "chat", "offline"),
)
_SIMULATED = ("engines", "trials")


@app.command()
def demo() -> None:
    """Run the main job on a server of its own and check every figure; 0 when all hold."""
    from gateway.bench.checks import failed
    from gateway.bench.demo import run_demo
    from gateway.bench.interrupt import run_interruptible

    console = Console()
    try:
        checks = run_interruptible(run_demo(console))
    except KeyboardInterrupt:
        console.print("\nStopped; nothing is left running.")
        raise typer.Exit(INTERRUPTED) from None
    if missed := failed(checks):
        console.print(f"[red]{len(missed)} of {len(checks)} checks failed[/]")
        raise typer.Exit(1)


@app.command()
def engine(
    profile: Annotated[str, typer.Option(help="a100-7b, a100-8b, h100-7b or h200-8b.")] = "a100-8b",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8001,
    policy: Annotated[str, typer.Option(help="fcfs, or priority: lower first.")] = "fcfs",
    scale: Scale = 1.0,
    model: Annotated[str, typer.Option(help="Model name; the profile's if not given.")] = "",
    metrics: Annotated[str, typer.Option(help="Names of vllm or sglang.")] = "vllm",
    max_num_seqs: SequenceSlots = None,
    max_num_batched_tokens: StepTokens = None,
) -> None:
    """Serve a simulated engine: OpenAI-compatible, in the time that a GPU would take."""
    from gateway.simulator.options import EngineOptions
    from gateway.simulator.profile import profile_named
    from gateway.simulator.run import run_engine
    from gateway.telemetry.logs import set_up_logs

    chosen = profile_named(profile).with_flags(max_num_seqs, max_num_batched_tokens)
    set_up_logs("info")
    run_engine(
        EngineOptions(chosen, host, port, policy=policy, scale=scale, model=model, flavour=metrics)
    )


@app.command()
def coserve(
    context: typer.Context,
    profile: Profile = "a100-8b",
    engines: Engines = 2,
    rate: Rate = 5.04,
    share: Share = None,
    chat: Mean = None,
    offline: Mean = None,
    slo: SloTimes = None,
    price: Price = None,
    seconds: Seconds = 300.0,
    slices: Slices = 3,
    trace: Trace = None,
    trials: Trials = True,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Write the arms as an SVG.")] = None,
    report: ReportFile = None,
    target: Targets = None,
    model: Annotated[str, typer.Option(help="Model name at the target.")] = "",
    api_key: Key = "none",
    priority: Annotated[bool, typer.Option(help="The target takes priorities.")] = False,
    gateway: Way = None,
    gateway_model: Annotated[str, typer.Option(help="Model name there, if another.")] = "",
    gateway_key: Annotated[str, typer.Option(help="Client key there.")] = "none",
    flood: Flood = 256,
    cap: Cap = 32,
    itl_target: Gap = ITL_TARGET,
    max_num_seqs: SequenceSlots = None,
    max_num_batched_tokens: StepTokens = None,
) -> None:
    """Interactive calls beside offline work in arms: simulated, or on servers that run."""
    from gateway.bench.coserve import command
    from gateway.bench.coserve.batch_arm import Gateway
    from gateway.bench.coserve.fitting import Fitting
    from gateway.bench.coserve.live import Target
    from gateway.simulator.profile import profile_named

    _refuse_unheard(context)
    chosen = profile_named(profile).with_flags(max_num_seqs, max_num_batched_tokens).priced(price)
    run = chosen, engines, rate, seconds, slices, trace, as_json, plot, trials, itl_target
    wanted = command.Wanted(*run, Fitting(share, slo), chat, offline, report)
    if not target:
        command.run_simulated(Console(), wanted)
        return
    way = Gateway(gateway, gateway_model or model, gateway_key) if gateway else None
    servers = Target(tuple(target), model, api_key, priority, way)
    try:
        command.run_against(Console(), wanted, servers, flood=flood, cap=cap)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


@app.command()
def load(
    context: typer.Context,
    base_url: Annotated[str, typer.Argument(help="Address ending in /v1.")],
    model: Annotated[str, typer.Option(help="Model name.")],
    api_key: Annotated[str, typer.Option(envvar="HEADWAY_API_KEY", help="Client key.")] = "none",
    calls: Calls = 64,
    concurrency: AtOnce = 8,
    rate: OpenRate = None,
    max_tokens: Answer = 64,
) -> None:
    """Put load on any OpenAI-compatible server and report TTFT, ITL and tokens per second."""
    from gateway.bench.interrupt import run_interruptible
    from gateway.bench.load import Load, run_load, show_load

    if rate:
        _refuse(context, ("concurrency",), "with --rate")
    wanted = Load(base_url, model, api_key, calls, concurrency, rate, max_tokens)
    try:
        report = run_interruptible(run_load(wanted))
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    show_load(Console(), report)
    if report.failures:
        raise typer.Exit(1)


def _refuse_unheard(context: typer.Context) -> None:
    """Options of `coserve` that others make useless."""
    given = context.params
    live = bool(given["target"])
    _refuse(context, _SIMULATED if live else _LIVE, "with --target" if live else "without --target")
    if given["trace"]:
        _refuse(context, ("rate", "chat"), "with --trace")
    if given["share"]:
        _refuse(context, ("rate",), "with --share")
    if not given["gateway"]:
        _refuse(context, ("gateway_model", "gateway_key"), "without --gateway")


def _refuse(context: typer.Context, names: tuple[str, ...], way: str) -> None:
    """Raises ConfigError when options were given that would go unheard."""
    given = [
        f"--{name.replace('_', '-')}"
        for name in names
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
    ]
    if given:
        raise ConfigError(f"{way} there is no use for {', '.join(given)}")
