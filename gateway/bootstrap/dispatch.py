"""``headway dispatch``: the offline process, put together and run."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Mapping
from functools import partial

import uvloop

from gateway.batches.expiry import Ages, Expiry
from gateway.batches.finalize import Finalizer
from gateway.batches.finishing import Finisher, Finishing
from gateway.batches.forecast import Forecaster
from gateway.batches.intake import Intake, IntakeRule
from gateway.batches.publish import Publisher
from gateway.batches.reconcile import Reconciler
from gateway.batches.rows import RowSource
from gateway.bootstrap.announce import announced
from gateway.bootstrap.data_dir import ready_data_dir, room_in
from gateway.bootstrap.lanes import Lanes
from gateway.bootstrap.late_work import capped_shards, purse_keeper
from gateway.bootstrap.local import parse_addresses, with_addresses
from gateway.bootstrap.observers import Observers
from gateway.bootstrap.pools import target_carriers, target_pools
from gateway.bootstrap.reports import Reporting
from gateway.bootstrap.store_url import store_url
from gateway.core.clock import Clock, SystemClock
from gateway.core.ids import new_id
from gateway.core.settings import Settings
from gateway.core.targets import EngineLoad
from gateway.dispatch.carriage import Means
from gateway.dispatch.fleet import Fleet, FleetTalk
from gateway.dispatch.held import Holdings
from gateway.dispatch.hurry import Hurry
from gateway.dispatch.lane import TargetLane
from gateway.dispatch.load import InteractiveLoad, LoadListener
from gateway.dispatch.loop import Dispatcher, LeaseLimits
from gateway.dispatch.pool import Pool
from gateway.dispatch.process import Runs, run_until
from gateway.dispatch.reaper import Reaper
from gateway.dispatch.renewer import Renewer
from gateway.dispatch.report import dispatcher_report
from gateway.dispatch.run import RowRunner
from gateway.dispatch.settle import Settler
from gateway.dispatch.webhooks import Patience, Webhooks
from gateway.jobs.finish import JobFinisher, Tell
from gateway.jobs.put_back import JobKeeper
from gateway.jobs.response_sweep import ResponseSweeper
from gateway.metering.journal import Journal
from gateway.metering.ledger import JournalLedger
from gateway.metering.shipper import Shipper
from gateway.policy.loader import load_policy
from gateway.policy.model import Policy
from gateway.providers.registry import Registry
from gateway.providers.webhooks import WebhookSender
from gateway.routing.offline import RowCaller
from gateway.routing.router import Router
from gateway.routing.target_monitor import TargetMonitor
from gateway.store.batches import BatchStore
from gateway.store.blobs import LocalBlobs
from gateway.store.carries import Carries
from gateway.store.client import StoreClient, connect
from gateway.store.controls import Controls
from gateway.store.deliveries import Deliveries
from gateway.store.files import FileStore
from gateway.store.fleet import FleetChannel
from gateway.store.job_commands import JobCommands
from gateway.store.jobs import LISTING, JobStore
from gateway.store.load import LoadChannel
from gateway.store.parts import PartFiles
from gateway.store.queue import QueueClient, RetryRule
from gateway.store.reports import TargetReports
from gateway.store.responses import ResponseStore
from gateway.store.usage import UsageTotals
from gateway.telemetry.logs import set_up_logs

log = logging.getLogger(__name__)

_CLOSE_SECONDS = 1.0
_HOUR_SECONDS = 3600.0
_DAY_SECONDS = 86_400.0


def run_dispatch(settings: Settings, local: list[str]) -> None:
    """Dispatch until SIGTERM or SIGINT. ``local`` are texts NAME=URL.

    Raises ConfigError when the policy or the data directory is wrong or no queue server is known.
    """
    set_up_logs(settings.log_level)
    redis_url = store_url(settings)
    ready_data_dir(settings.data_dir)
    addresses = parse_addresses(local)
    if not addresses and (known := announced(settings.data_dir)) is not None:
        addresses = dict(known.local)
    policy = with_addresses(load_policy(settings.policy), addresses)
    with room_in(settings.data_dir):
        uvloop.run(_dispatch(settings, policy, redis_url))


async def _dispatch(settings: Settings, policy: Policy, redis_url: str) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    process = _Process(settings, policy, connect(redis_url))
    try:
        await run_until(stop, process.dispatcher, process.keepers, process.others)
    finally:
        await process.aclose()


class _Process:
    """The objects of one dispatcher process."""

    def __init__(self, settings: Settings, policy: Policy, redis: StoreClient) -> None:
        clock = SystemClock()
        self._redis = redis
        self._parts = PartFiles(settings.data_dir)
        self._registry = Registry.from_policy(policy, clock, settings.max_answer_bytes)
        folder = settings.data_dir / "journal"
        journal = Journal(folder)
        self._shipper = Shipper(
            folder, journal, UsageTotals(redis), clock, record_days=settings.record_days
        )
        queue = QueueClient(redis)
        blobs = LocalBlobs(settings.data_dir)
        source = RowSource(blobs)
        holdings = Holdings(clock)
        retry = _retry(settings)
        job_done = asyncio.Event()
        settler = Settler(queue, self._parts, holdings, retry, clock, job_done)
        router = Router(policy)
        caller = RowCaller(router, self._registry)
        self._observers = Observers(settings, policy)
        runner = RowRunner(caller, JournalLedger(journal, self._observers.each), clock)
        self._carriers = target_carriers(
            policy,
            router,
            clock,
            lambda api, rules: Means(api, rules, Carries(blobs), runner, settler, holdings, clock),
        )
        monitor = TargetMonitor(policy, router.states, self._registry.get_page)
        limits = _limits(settings, policy)
        fleet = Fleet(limits.worker, clock)
        lanes, signals = _lanes(settings, policy, redis, monitor, fleet, clock)
        pools = target_pools(
            policy,
            lanes,
            self._carriers,
            lambda lanes: Pool(lanes, runner, settler, holdings, settings.retry_base_seconds),
        )
        self.dispatcher = Dispatcher(queue, source, holdings, settler, pools, limits)
        renewer = Renewer(queue, holdings, limits.worker, limits.ttl_ms, self.dispatcher.abort)
        self.keepers: tuple[Runs, ...] = (renewer, settler)
        reaper = Reaper(queue, source, settler, retry, settings.reap_interval_seconds)
        self.others: tuple[Runs, ...] = (reaper, self._shipper, *signals)
        self.others += _batch_loops(policy, redis, blobs, limits, clock)
        self.others += (_expiry(settings, redis, blobs, clock), _sweeper(settings, blobs, clock))
        finisher = Finisher(limits.worker, limits.ttl_ms)
        webhooks = _webhooks(settings, policy, redis, blobs, clock)
        tell = webhooks.tell if any(t.webhooks for t in policy.tenants.values()) else None
        self.others += _ending_loops(redis, blobs, finisher, clock, job_done, tell)
        self.others += (webhooks,)

    async def aclose(self) -> None:
        """Ship the last records and close everything, within seconds."""
        await self._registry.aclose()
        for carrier in self._carriers.values():
            await carrier.aclose()
        await self._shipper.close(_CLOSE_SECONDS)
        await self._observers.aclose()
        self._parts.close()
        await self._redis.aclose()


def _lanes(
    settings: Settings,
    policy: Policy,
    redis: StoreClient,
    monitor: TargetMonitor,
    fleet: Fleet,
    clock: Clock,
) -> tuple[dict[str, TargetLane], tuple[Runs, ...]]:
    """The lanes, and the loops that tell them of people, deadlines, engines and each other."""
    load, hurry = InteractiveLoad(clock), Hurry()
    lanes = Lanes(settings, load, hurry, fleet, clock).of(policy)
    monitor.listeners.append(partial(_tell, lanes))
    listener = LoadListener(LoadChannel(redis), load)
    talk = FleetTalk(FleetChannel(redis), fleet)
    capped = capped_shards(policy, lanes)
    forecaster = Forecaster(QueueClient(redis), clock, hurry.note, capped)
    keeper = purse_keeper(lanes, redis, fleet.me, clock)
    make = partial(dispatcher_report, lanes)
    reporting = Reporting(TargetReports(redis, clock), fleet.me, "dispatcher", make)
    return lanes, (monitor, listener, talk, keeper, forecaster, reporting)


def _tell(lanes: Mapping[str, TargetLane], target: str, load: EngineLoad) -> None:
    if target in lanes:
        lanes[target].told(load)


def _batch_loops(
    policy: Policy, redis: StoreClient, blobs: LocalBlobs, limits: LeaseLimits, clock: Clock
) -> tuple[Runs, ...]:
    """Intake and reconciling: what batches need besides their rows."""
    controls = Controls(blobs)
    queue = QueueClient(redis, standing=controls)
    batches = BatchStore(JobCommands(redis), blobs)
    rule = IntakeRule(limits.ttl_ms, policy.quota)
    return (
        Intake(batches, blobs, queue, policy.served(), clock, rule),
        Reconciler(batches, queue, controls, clock),
    )


def _expiry(settings: Settings, redis: StoreClient, blobs: LocalBlobs, clock: Clock) -> Expiry:
    ages = Ages(
        every=settings.sweep_seconds,
        orphan=settings.orphan_seconds,
        unwritten=min(_HOUR_SECONDS, settings.orphan_seconds),
        batch=settings.batch_days * _DAY_SECONDS,
    )
    batches = BatchStore(JobCommands(redis), blobs)
    return Expiry(FileStore(blobs, clock), blobs, batches, clock, ages)


def _sweeper(settings: Settings, blobs: LocalBlobs, clock: Clock) -> ResponseSweeper:
    store = ResponseStore(blobs, clock, settings.response_days * _DAY_SECONDS)
    return ResponseSweeper(store, settings.sweep_seconds)


def _ending_loops(
    redis: StoreClient,
    blobs: LocalBlobs,
    finisher: Finisher,
    clock: Clock,
    job_done: asyncio.Event,
    tell: Tell | None,
) -> tuple[Runs, ...]:
    """Finalising, and what puts jobs back."""
    controls = Controls(blobs)
    queue = QueueClient(redis, standing=controls)
    batches = BatchStore(JobCommands(redis), blobs)
    publisher = Publisher(batches, FileStore(blobs, clock), blobs, clock)
    finalizer = Finalizer(batches, blobs, queue, publisher, clock)
    jobs = JobStore(JobCommands(redis, LISTING), blobs)
    ends = JobFinisher(jobs, blobs, queue, clock, tell)
    return (
        Finishing(queue, finalizer, ends, finisher, job_done),
        JobKeeper(jobs, queue, controls, clock),
    )


def _webhooks(
    settings: Settings, policy: Policy, redis: StoreClient, blobs: LocalBlobs, clock: Clock
) -> Webhooks:
    batches = BatchStore(JobCommands(redis), blobs)
    sender = WebhookSender(allow_private=settings.webhooks_allow_private)
    patience = Patience(base=settings.webhook_base_seconds, total=settings.webhook_seconds)
    return Webhooks(policy, batches, Deliveries(redis, blobs), sender, patience, clock)


def _limits(settings: Settings, policy: Policy) -> LeaseLimits:
    worker = f"{socket.gethostname()}-{os.getpid()}-{new_id('d', 6)}"
    batch = policy.batch
    ttl_ms = int(1000 * settings.lease_seconds)
    slack_ms = int(1000 * batch.rescue_slack)
    return LeaseLimits(
        worker, batch.lease_rows, batch.lease_tokens, ttl_ms, batch.quantum, slack_ms
    )


def _retry(settings: Settings) -> RetryRule:
    return RetryRule(
        settings.row_attempts,
        int(1000 * settings.retry_base_seconds),
        int(1000 * settings.retry_cap_seconds),
    )
