"""Composition root of the worker: settings in, adapters built, tasks polled. Nothing imports it."""

import gc

if __name__ == "__main__":
    gc.disable()  # until all is loaded: none of it is garbage, and looking through it takes a third of a start

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import structlog
from opentelemetry.trace import Tracer
from temporalio.client import Client
from temporalio.runtime import Runtime
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkflowRunner
from temporalio.workflow import NondeterminismError

from activities.composition import NO_TRACES, build_activities
from activities.interceptors import FailureInterceptor, HeartbeatInterceptor, ObservationInterceptor
from edgewright import __version__
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.migrations import OtherSchema
from edgewright.adapters.temporal.client import connect
from edgewright.adapters.temporal.fleet import TemporalFleet
from edgewright.adapters.temporal.runtime import WorkerMetrics, open_runtime
from edgewright.adapters.tracing import open_tracer
from edgewright.adapters.webhook.sender import open_sender
from edgewright.core_dumps import forbid_core_dumps
from edgewright.errors import EdgewrightError, Waiting
from edgewright.event_loop import new_event_loop, prefer_the_loop, spare_what_is_loaded, watch_lag
from edgewright.held_loop import HeldLoop
from edgewright.logs import configure_logs
from edgewright.messages.names import BULK_QUEUE, CLUSTERS_QUEUE, INTERACTIVE_QUEUE, NOTIFICATIONS_QUEUE
from edgewright.settings import Settings
from edgewright.wiring import open_ports
from workflows.causes import WorkflowCauseInterceptor
from workflows.plugin import WORKFLOWS

log = structlog.get_logger("edgewright.worker")

GRACE = timedelta(seconds=5)
"""How long a stopping worker lets activities finish."""
SCHEMA_SECONDS = 10.0
"""How often a worker looks whether the database still has the schema that it knows."""
STICKY = timedelta(seconds=5)
"""How long a workflow task waits for the worker that has its workflow in memory; a dead one never comes."""
CACHED_WORKFLOWS = 500
"""Each costs about 180 kB; a workflow that fell out of the cache is replayed from its short history."""
FIRST_PAUSE_SECONDS = 0.1
"""Between two tries to reach Temporal, which often starts at the same time; doubled each time."""
BUILD_ID = f"edgewright-{__version__}"
"""Shown in the Web UI. Without one, the SDK hashes every loaded module at each start: two seconds of a core."""


def build_workers(
    client: Client,
    activities: Sequence[Callable[..., Any]],
    *,
    slots: int,
    tracer: Tracer = NO_TRACES,
    runner: WorkflowRunner | None = None,
) -> list[Worker]:
    """One worker per task queue, all in this process.

    The workflow's own queue takes the activities that somebody waits for as well: the server hands those out with
    its answer to the workflow task, to the same worker, and saves the trip through the queue (ADR 8).

    Args:
        slots: activities that run at once, of each queue.
        runner: of workflows; None: plainly, without a sandbox.
    """
    interceptors = [ObservationInterceptor(tracer), FailureInterceptor(), HeartbeatInterceptor()]
    return [
        Worker(
            client,
            task_queue=CLUSTERS_QUEUE,
            workflows=WORKFLOWS,
            workflow_runner=runner or UnsandboxedWorkflowRunner(),
            activities=activities,
            interceptors=[WorkflowCauseInterceptor(), *interceptors],
            max_concurrent_activities=slots,
            max_cached_workflows=CACHED_WORKFLOWS,
            sticky_queue_schedule_to_start_timeout=STICKY,
            workflow_failure_exception_types=[NondeterminismError],  # the sweep begins it anew (ADR 5)
            build_id=BUILD_ID,
            graceful_shutdown_timeout=GRACE,
        ),
        *(
            Worker(
                client,
                task_queue=queue,
                activities=activities,
                interceptors=interceptors,
                max_concurrent_activities=slots,
                build_id=BUILD_ID,
                graceful_shutdown_timeout=GRACE,
            )
            for queue in (INTERACTIVE_QUEUE, BULK_QUEUE, NOTIFICATIONS_QUEUE)
        ),
    ]


async def connect_patiently(settings: Settings, stop: asyncio.Event, runtime: Runtime) -> Client | None:
    """Waits for Temporal as long as it takes; None when stopped meanwhile."""
    pause = FIRST_PAUSE_SECONDS
    while not stop.is_set():
        try:
            address = settings.temporal_address or "127.0.0.1:7233"
            return await connect(address, settings.temporal_namespace, runtime=runtime)
        except Waiting as trouble:
            log.warning("waiting_for_temporal", detail=trouble.detail)
            try:
                await asyncio.wait_for(stop.wait(), timeout=pause)
            except TimeoutError:
                pause = min(2 * pause, trouble.retry_after or pause)
    return None


async def run(settings: Settings, stop: asyncio.Event) -> None:
    """Runs until ``stop`` is set; lets what is under way finish within the grace."""
    async with AsyncExitStack() as stack:
        tracer = stack.enter_context(open_tracer(settings.otlp_endpoint, "edgewright-worker"))
        opened = await stack.enter_async_context(open_ports(settings))
        await demand_schema(opened.database)
        runtime = open_runtime(settings.worker_metrics_address)
        metrics = WorkerMetrics(runtime)
        held = HeldLoop()
        client = await connect_patiently(settings, stop, runtime)
        if client is None:
            return
        ports = opened.measured(metrics)
        activities = build_activities(
            ports,
            TemporalFleet(client, name_of=ports.directory.name_of),
            await stack.enter_async_context(open_sender(ca_bundle=settings.ca_bundle)),
            organisation=settings.organisation,
            external_url=settings.effective_external_url,
            commissioned=metrics.commissioned,
            notified=metrics.notified,
            tracer=tracer,
        )
        for worker in build_workers(client, activities, slots=settings.activity_slots, tracer=tracer):
            await stack.enter_async_context(worker)
        spare_what_is_loaded()
        if settings.ready_file:
            await asyncio.to_thread(settings.ready_file.touch)
        for watch in (watch_lag(metrics.loop_lag), held.watch(metrics.loop_held)):
            stack.callback(asyncio.create_task(watch).cancel)
        log.info("polling", temporal=settings.temporal_address, namespace=settings.temporal_namespace)
        async with leaving_with_another_schema(ports.database, stop):
            await stop.wait()


async def demand_schema(database: Database) -> None:
    """Raises ``OtherSchema`` unless the schema is the one of this program; a database that is away may have it."""
    try:
        await database.demand_schema()
    except OtherSchema:
        raise
    except EdgewrightError as trouble:
        log.warning("cannot_check_schema", reason=trouble.detail)


@asynccontextmanager
async def leaving_with_another_schema(database: Database, stop: asyncio.Event) -> AsyncIterator[None]:
    """Sets ``stop``, and raises ``OtherSchema`` at the end, once a newer version has migrated the database."""

    async def watch() -> None:
        while True:
            await asyncio.sleep(SCHEMA_SECONDS)
            await demand_schema(database)

    watching = asyncio.create_task(watch())
    watching.add_done_callback(lambda _ended: stop.set())
    try:
        yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def main() -> None:
    """Reads the settings, runs until SIGTERM or SIGINT."""
    gc.freeze()
    gc.enable()
    forbid_core_dumps()
    prefer_the_loop()
    settings = Settings()
    configure_logs(settings.log_level)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await run(settings, stop)


if __name__ == "__main__":
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(main())
    except EdgewrightError as error:
        sys.exit(f"{error.detail} {error.hint or ''}".strip())
