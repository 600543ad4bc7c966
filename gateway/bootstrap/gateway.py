"""The gateway's objects, put together. Nothing here starts a process."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from starlette.routing import Route

from gateway.api.app import AppParts, build_app
from gateway.api.batches import batch_routes
from gateway.api.body import BodyLimits
from gateway.api.calls import CallParts, StreamTimes
from gateway.api.deferred import Deferred
from gateway.api.files import file_routes
from gateway.api.health import Probe
from gateway.api.jobs import job_routes
from gateway.api.metrics import metrics_route
from gateway.api.responses import response_routes
from gateway.api.results import results_route
from gateway.batches.results import ResultReader, Waiting
from gateway.batches.service import BatchService
from gateway.bootstrap.drain import Drain
from gateway.bootstrap.gauges import show_places, show_targets
from gateway.bootstrap.observers import Observers
from gateway.bootstrap.probes import Watch
from gateway.bootstrap.reports import Reporting
from gateway.bootstrap.share import Share
from gateway.core.clock import Clock
from gateway.core.ids import new_id
from gateway.core.load import TargetLoad
from gateway.core.loops import keep_doing
from gateway.core.settings import Settings
from gateway.jobs.responses import ResponseService
from gateway.jobs.service import JobService
from gateway.metering.journal import Journal
from gateway.metering.ledger import JournalLedger
from gateway.metering.shipper import Shipper
from gateway.policy.model import Policy
from gateway.providers.registry import Registry
from gateway.routing.admission import Admission
from gateway.routing.classifier import Classifier
from gateway.routing.cooldowns import SharedCooldowns
from gateway.routing.load import LoadReporter
from gateway.routing.report import gateway_report
from gateway.routing.router import Router
from gateway.routing.target_monitor import TargetMonitor
from gateway.store.batches import BatchStore
from gateway.store.blobs import LocalBlobs
from gateway.store.client import StoreClient, connect
from gateway.store.controls import Controls
from gateway.store.cooldowns import CooldownChannel
from gateway.store.files import FileStore
from gateway.store.job_commands import JobCommands
from gateway.store.jobs import LISTING, JobStore
from gateway.store.load import LoadChannel, LoadWord
from gateway.store.queue import QueueClient
from gateway.store.reports import TargetReports
from gateway.store.responses import ResponseStore
from gateway.store.room import DiskRoom
from gateway.store.usage import UsageTotals
from gateway.tenancy.keys import KeyRing

_DAY_SECONDS = 86_400.0
Close = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Gateway:
    """The application and what must be ended with it."""

    app: Drain
    closing: tuple[Close, ...]

    def drain(self) -> None:
        """Turn new calls away from now on."""
        self.app.begin()

    async def aclose(self) -> None:
        """Ship the last records and close all connections."""
        for close in self.closing:
            await close()


async def build_gateway(
    settings: Settings,
    policy: Policy,
    redis_url: str,
    key: str,
    clock: Clock,
    share: Share | None = None,
) -> Gateway:
    """Everything the application needs, with its background loops running.

    ``policy`` has an address for every target; of several gateways on one port it is this one's
    ``share``. Raises ConfigError for a wrong key.
    """
    redis = connect(redis_url)
    folder = settings.data_dir / "journal"
    journal = Journal(folder)
    shipper = Shipper(folder, journal, UsageTotals(redis), clock, record_days=settings.record_days)
    watch = Watch(policy, redis.ping)
    registry = Registry.from_policy(policy, clock, settings.max_answer_bytes)
    observers = Observers(settings, policy, share)
    router = Router(policy)
    admission = Admission(policy, clock, router.states)
    show_places(observers.metrics, admission)
    show_targets(observers.metrics, router.states, clock, engines=share is None or not share.index)
    disk = _Disk(LocalBlobs(settings.data_dir), _room(settings, clock))
    jobs = _jobs(disk, redis, policy, router, clock)
    calls = CallParts(
        router,
        registry,
        admission,
        Classifier(policy.classify),
        JournalLedger(journal, observers.each),
        clock,
        StreamTimes(head_hold=policy.head_hold),
        Deferred(jobs),
    )
    routes = (metrics_route(observers.page), *_job_routes(settings, jobs, calls, disk))
    front = _Front(KeyRing.from_policy(policy, key), policy.cors.origins, routes, disk)
    app = _application(settings, redis, calls, watch, front)
    tending = _tend_targets(
        redis, TargetMonitor(policy, router.states, registry.get_page), router, clock
    )
    me = new_id("g")
    telling = _tell_load(me, redis, admission, observers)
    make = partial(gateway_report, router.states, admission, clock)
    reporting = Reporting(TargetReports(redis, clock), me, "gateway", make)
    beside = (shipper.run(), watch.run(), disk.room.run(), tending, telling, reporting.run())
    loops = [asyncio.create_task(loop) for loop in (*beside, *observers.loops())]
    ends = (partial(_stop, loops), registry.aclose, shipper.close, observers.aclose, redis.aclose)
    return Gateway(app, ends)


async def _stop(loops: Sequence[asyncio.Task[None]]) -> None:
    for loop in loops:
        loop.cancel()
    await asyncio.gather(*loops, return_exceptions=True)


async def _tell_load(
    me: str, redis: StoreClient, admission: Admission, observers: Observers
) -> None:
    channel = LoadChannel(redis)

    async def publish(targets: Mapping[str, TargetLoad]) -> None:
        await channel.publish(LoadWord(me, targets))

    reporter = LoadReporter(admission, observers.latency.take, publish)
    await keep_doing(reporter.report, "the load report", every=0)


@dataclass(frozen=True, slots=True)
class _Disk:
    """What is kept, and the one room that all new work asks."""

    blobs: LocalBlobs
    room: DiskRoom


@dataclass(frozen=True, slots=True)
class _Front:
    """Who may call, pages of which origins, routes besides those of files and batches, the disk."""

    keys: KeyRing
    origins: Sequence[str]
    routes: Sequence[Route]
    disk: _Disk


async def _tend_targets(
    redis: StoreClient, monitor: TargetMonitor, router: Router, clock: Clock
) -> None:
    shared = SharedCooldowns(new_id("g"), router.states, CooldownChannel(redis), clock)
    await asyncio.gather(
        monitor.run(),
        keep_doing(shared.tell, "telling cooldowns", every=0),
        keep_doing(shared.hear, "hearing of cooldowns", every=0),
    )


def _application(
    settings: Settings,
    redis: StoreClient,
    calls: CallParts,
    watch: Watch,
    front: "_Front",
) -> Drain:
    blobs = front.disk.blobs
    files = FileStore(blobs, calls.clock, front.disk.room)
    batches = BatchStore(JobCommands(redis), blobs)
    queue = QueueClient(redis)
    service = BatchService(batches, files, queue, calls.clock)
    drain: Drain
    waiting = Waiting(stopping=lambda: drain.draining)
    results = results_route(ResultReader(batches, files, blobs, queue, calls.clock, waiting))

    async def serving() -> bool:
        return not drain.draining

    probes = (
        Probe("store", watch.store),
        Probe("targets", watch.targets, required=True),
        Probe("serving", serving, required=True),
    )
    routes = (
        *front.routes,
        *file_routes(files, settings),
        *batch_routes(service, settings),
        results,
    )
    parts = AppParts(calls, front.keys, _limits(settings), probes, routes, front.origins)
    drain = Drain(build_app(parts))
    return drain


def _jobs(
    disk: _Disk, redis: StoreClient, policy: Policy, router: Router, clock: Clock
) -> JobService:
    store = JobStore(JobCommands(redis, LISTING), disk.blobs, disk.room)
    queue = QueueClient(redis, standing=Controls(disk.blobs))
    return JobService(store, queue, router, policy.quota, clock)


def _job_routes(settings: Settings, jobs: JobService, calls: CallParts, disk: _Disk) -> list[Route]:
    """Of jobs, and of responses, which jobs make in the background."""
    clock, limits = calls.clock, _limits(settings)
    seconds = settings.response_days * _DAY_SECONDS
    store = ResponseStore(disk.blobs, clock, seconds, disk.room)
    responses = ResponseService(store, jobs, limits.size)
    return [*job_routes(jobs, clock, limits), *response_routes(responses, calls, limits)]


def _limits(settings: Settings) -> BodyLimits:
    return BodyLimits(settings.max_body_bytes, settings.max_body_parts)


def _room(settings: Settings, clock: Clock) -> DiskRoom:
    free, limit = settings.disk_free_bytes, settings.disk_limit_bytes
    return DiskRoom(settings.data_dir, clock, free=free, limit=limit)
