"""``headway worker``: the bundled model server of one local target."""

from gateway.core.errors import ConfigError
from gateway.core.settings import Settings
from gateway.policy.loader import load_policy
from gateway.policy.model import Policy
from gateway.policy.target import TargetPolicy
from gateway.telemetry.logs import set_up_logs
from gateway.worker.options import Faults, WorkerOptions
from gateway.worker.run import run_worker


def run_local_worker(settings: Settings, target: str | None, port: int) -> None:
    """Serve until SIGTERM or SIGINT.

    ``target`` names the policy's local target; None takes its only one. Raises ConfigError when
    there is none such, PortInUse when the address is taken.
    """
    set_up_logs(settings.log_level)
    run_worker(worker_options(settings, load_policy(settings.policy), target, port))


def worker_options(
    settings: Settings, policy: Policy, target: str | None, port: int
) -> WorkerOptions:
    """What the policy and the settings say about this worker."""
    chosen = _local_target(policy, target)
    worker = chosen.worker
    return WorkerOptions(
        host=settings.host,
        port=port,
        model=None if settings.model_path is None else str(settings.model_path),
        served_model=next(iter(chosen.models.values())),
        rows=worker.rows,
        reserved_rows=worker.reserved_rows,
        context=worker.context,
        itl_target=worker.itl_target,
        prefill_chunk=worker.prefill_chunk,
        threads=worker.threads,
        device=settings.device,
        request_log=settings.worker_log,
        faults=Faults.parse(settings.fault_injection),
        log_level=settings.log_level,
    )


def _local_target(policy: Policy, name: str | None) -> TargetPolicy:
    local = {key: entry for key, entry in policy.targets.items() if entry.kind == "local"}
    if name is None and len(local) == 1:
        return next(iter(local.values()))
    if name is None:
        raise ConfigError(f"the policy has {len(local)} local targets: say which with --target")
    if name not in local:
        raise ConfigError(f"the policy has no local target {name}")
    return local[name]
