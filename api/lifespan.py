"""What runs beside the requests, and how a gateway ends."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import structlog

from api.gateway import Gateway
from api.live import Live
from api.operator_time import MeteredThreads
from edgewright.adapters.database.migrations import OtherSchema
from edgewright.errors import EdgewrightError
from edgewright.event_loop import watch_lag
from edgewright.ports.edge_reports import EdgeReports
from edgewright.ports.fleet import Fleet

LISTENING_SECONDS = 5.0
SCHEMA_SECONDS = 10.0
SCHEDULE_SECONDS = 30.0
"""How often each gateway looks for the schedule of the sweep."""

_log = structlog.get_logger("edgewright.api")


@asynccontextmanager
async def running(gateway: Gateway, live: Live) -> AsyncIterator[None]:
    """Runs the background tasks; at the end long answers end and everything that waits is written."""
    asyncio.get_running_loop().set_default_executor(MeteredThreads())
    tasks = [
        _start("heartbeats", live.heartbeats.flush_forever, live),
        _start("held heartbeats", live.held_beats.follow_forever, live),
        _start("listening", lambda: _keep_listening(gateway.ports.edge_reports, live.unwritable), live),
        _start("schema", lambda: _leave_with_another_schema(gateway.demand_schema), live),
        _start("sweep", lambda: _keep_the_sweep(gateway.fleet, gateway.sweep_every), live),
        _start("loop lag", lambda: watch_lag(live.metrics.loop_lag.observe), live),
    ]
    try:
        yield
    finally:
        live.closing.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await live.heartbeats.flush()
        await live.nudges.drain()


def _start(name: str, work: Callable[[], Coroutine[Any, Any, None]], live: Live) -> "asyncio.Task[None]":
    task = asyncio.create_task(work(), name=name)

    def ended(task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and not live.closing.is_set():
            error = task.exception()
            live.broken.add(name)
            _log.critical("background task ended unexpectedly", task=name, error=type(error).__name__)

    task.add_done_callback(ended)
    return task


async def _keep_listening(edge_reports: EdgeReports, unwritable: asyncio.Event) -> None:
    """Leases only run out while somebody listens; this says that somebody does, and finds a database that takes
    nothing."""
    while True:
        try:
            await edge_reports.keep_listening()
            unwritable.clear()
        except EdgewrightError as error:
            if not unwritable.is_set():
                _log.error("cannot write to the database", reason=error.detail)
            unwritable.set()
        await asyncio.sleep(LISTENING_SECONDS)


async def _leave_with_another_schema(demand_schema: Callable[[], Awaitable[None]] | None) -> None:
    """A newer version has migrated the database under this process: what it would write now might mean something
    else there. Whoever starts it again reads the same sentence."""
    while demand_schema is not None:
        try:
            await demand_schema()
        except OtherSchema as error:
            _log.critical("stopping: other database schema", detail=error.detail, code=error.code, hint=error.hint)
            signal.raise_signal(signal.SIGTERM)
            return
        except EdgewrightError:
            pass  # the database is away; that is told elsewhere
        await asyncio.sleep(SCHEMA_SECONDS)
    await asyncio.Event().wait()


async def _keep_the_sweep(fleet: Fleet, every: timedelta) -> None:
    """Without the sweep leases do not expire and lost nudges stay lost: a schedule that is gone is made again."""
    while True:
        await asyncio.sleep(SCHEDULE_SECONDS)
        with suppress(EdgewrightError):
            if await fleet.restore_sweep(every):
                _log.warning("sweep schedule was missing, created it again")
