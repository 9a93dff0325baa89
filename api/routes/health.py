"""Identity, liveness, readiness and metrics of the gateway."""

import asyncio
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Request
from pydantic import Field
from starlette.responses import Response

from api.auth import Reader
from api.metrics import CONTENT_TYPE
from api.schemas.base import Answer
from api.scrape import Scrape
from edgewright import __version__
from edgewright.domain.conditions import late_sweep
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.errors import EdgewrightError, Waiting
from edgewright.ports.edge_reports import EdgeReports
from edgewright.ports.fleet import Fleet
from edgewright.ports.git_server import GitServer

PROBE_SECONDS = 3.0

router = APIRouter(tags=["health"])


class Software(Answer):
    vendor: str
    application: str
    revision: str


class Ping(Answer):
    """``installation``: the ID of this centre, which all its gateways share; a restored centre has another one."""

    service: UUID
    version: str
    software: Software
    installation: UUID | None = None


class Health(Answer):
    """``degraded`` names what is unavailable or paused, although the gateway can still work."""

    status: Literal["ok"] = "ok"
    degraded: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class HealthRoom:
    """What the health checks look at.

    Args:
        service: how ``/ping`` identifies this gateway.
        installation: ID by which ``/ping`` tells this centre from others.
        sweep_every: how often the sweep begins.
        broken: names of background tasks that ended by a defect.
        unwritable: set while the database accepts no writes.
    """

    edge_reports: EdgeReports
    git: GitServer
    fleet: Fleet
    service: UUID
    installation: UUID | None
    sweep_every: timedelta
    broken: AbstractSet[str]
    unwritable: asyncio.Event
    scrape: Scrape


async def health_room_of(request: Request) -> HealthRoom:
    """Returns that of this request's application. Async, because FastAPI runs plain functions in threads."""
    room: HealthRoom = request.app.state.health_room
    return room


TheHealthRoom = Annotated[HealthRoom, Depends(health_room_of)]


@router.get("/ping", summary="Identify the gateway")
async def ping(room: TheHealthRoom) -> Ping:
    """Needs no credentials. Clients of ACS, the AMRC Connectivity Stack, call this first."""
    return Ping(
        service=room.service,
        version=__version__,
        software=Software(vendor="Edgewright", application="edgewright", revision=__version__),
        installation=room.installation,
    )


@router.get("/healthz", summary="Check that the process is alive")
async def healthz() -> Health:
    """Needs no credentials. Checks nothing but this process."""
    return Health()


@router.get(
    "/readyz", summary="Check that the gateway can work", responses={503: {"description": "A part is out of reach."}}
)
async def readyz(room: TheHealthRoom) -> Health:
    """Needs no credentials. 503 names what is unavailable: the database (even if only writes fail) or Git storage.
    The gateway still accepts writes without Temporal, or while the sweep is paused or does not run.
    """
    if room.broken:
        raise Waiting(f"A background task has ended: {', '.join(sorted(room.broken))}.", code="gateway_broken")
    async with asyncio.TaskGroup() as probes:
        database = probes.create_task(_reaches_database(room))
        storage = probes.create_task(_reaches_git(room))
        temporal = probes.create_task(_reaches_temporal(room))
        sweeps = probes.create_task(_sweeps(room))
        paused = probes.create_task(_is_sweep_paused(room))
    reached = {"database": database.result(), "git": storage.result()}
    away = [part for part, there in reached.items() if not there]
    if away:
        raise Waiting(f"Out of reach: {' and '.join(away)}.", code="not_serving", where=away[0])
    if room.unwritable.is_set():
        raise Waiting("The database answers, but cannot be written.", code="not_serving", where="database")
    working = {"temporal": temporal.result(), "sweep": sweeps.result(), "sweep_paused": not paused.result()}
    return Health(degraded=[part for part, works in working.items() if not works])


@router.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
async def metrics(_operator: Reader, room: TheHealthRoom) -> Response:
    """Series about this gateway, and about the fleet according to the database."""
    return Response(await room.scrape.exposition(), media_type=CONTENT_TYPE)


async def _reaches_database(room: HealthRoom) -> bool:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await room.edge_reports.now()
    except (EdgewrightError, TimeoutError):
        return False
    return True


async def _reaches_git(room: HealthRoom) -> bool:
    """Whether the Git storage is there, and not just the empty mount point of its volume."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await asyncio.to_thread(room.git.exists, REPOSITORY_HELM_CHARTS)
    except (EdgewrightError, TimeoutError):
        return False


async def _reaches_temporal(room: HealthRoom) -> bool:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await room.fleet.healthy()
    except (EdgewrightError, TimeoutError):
        return False


async def _sweeps(room: HealthRoom) -> bool:
    """Whether the sweep runs; assumed until a gateway has been listening for a while."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            age = await room.edge_reports.sweep_age()
    except (EdgewrightError, TimeoutError):
        return True  # the database is what is away, and is named
    return age is None or age < late_sweep(room.sweep_every)


async def _is_sweep_paused(room: HealthRoom) -> bool:
    """Whether somebody paused the schedule of the sweep. Checked to report it at once, not after missed rounds."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await room.fleet.sweep_is_paused()
    except (EdgewrightError, TimeoutError):
        return False  # Temporal is what is away, and is named
