"""Health: who this is, whether it lives, whether it can work, and what it counts."""

import asyncio

from fastapi import APIRouter
from starlette.responses import Response

from api.auth import Reader
from api.live import TheGateway, TheLive
from api.metrics import CONTENT_TYPE
from api.schemas.health import Health, Ping, Software
from edgewright import __version__
from edgewright.domain.conditions import late_sweep
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.errors import EdgewrightError, Waiting

PROBE_SECONDS = 3.0

router = APIRouter(tags=["health"])


@router.get("/ping", summary="Who this is")
async def ping(gateway: TheGateway) -> Ping:
    """What ACS clients ask first; open."""
    return Ping(
        service=gateway.service,
        version=__version__,
        software=Software(vendor="Edgewright", application="edgewright", revision=__version__),
    )


@router.get("/healthz", summary="The process lives")
async def healthz() -> Health:
    """Open; asks nothing of anybody."""
    return Health()


@router.get("/readyz", summary="The gateway can work", responses={503: {"description": "A part is out of reach."}})
async def readyz(gateway: TheGateway, live: TheLive) -> Health:
    """503 names the part: database (also one that cannot be written) or Git storage. Without Temporal, or while the
    sweep does not run or is paused, everything that is written is still taken."""
    if live.broken:
        raise Waiting(f"A background task has ended: {', '.join(sorted(live.broken))}.", code="gateway_broken")
    async with asyncio.TaskGroup() as probes:
        database = probes.create_task(_reaches_database(gateway))
        storage = probes.create_task(_reaches_git(gateway))
        temporal = probes.create_task(_reaches_temporal(gateway))
        sweeps = probes.create_task(_sweeps(gateway))
        paused = probes.create_task(_is_sweep_paused(gateway))
    reached = {"database": database.result(), "git": storage.result()}
    away = [part for part, there in reached.items() if not there]
    if away:
        raise Waiting(f"Out of reach: {' and '.join(away)}.", code="not_serving", where=away[0])
    if live.unwritable.is_set():
        raise Waiting("The database answers, but cannot be written.", code="not_serving", where="database")
    working = {"temporal": temporal.result(), "sweep": sweeps.result(), "sweep_paused": not paused.result()}
    return Health(degraded=[part for part, works in working.items() if not works])


@router.get("/metrics", summary="Prometheus", response_class=Response)
async def metrics(_operator: Reader, live: TheLive) -> Response:
    """Series of this gateway, and of the fleet as the database has it."""
    return Response(await live.scrape.exposition(), media_type=CONTENT_TYPE)


async def _reaches_database(gateway: TheGateway) -> bool:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await gateway.ports.edge_reports.now()
    except (EdgewrightError, TimeoutError):
        return False
    return True


async def _reaches_git(gateway: TheGateway) -> bool:
    """Whether our Git storage is there, and not only the empty folder at which its volume is not mounted."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await asyncio.to_thread(gateway.ports.git.exists, REPOSITORY_HELM_CHARTS)
    except (EdgewrightError, TimeoutError):
        return False


async def _reaches_temporal(gateway: TheGateway) -> bool:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await gateway.fleet.healthy()
    except (EdgewrightError, TimeoutError):
        return False


async def _sweeps(gateway: TheGateway) -> bool:
    """Whether the sweep runs; nobody can tell before a gateway has listened for a while."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            age = await gateway.ports.edge_reports.sweep_age()
    except (EdgewrightError, TimeoutError):
        return True  # the database is what is away, and is named
    return age is None or age < late_sweep(gateway.sweep_every)


async def _is_sweep_paused(gateway: TheGateway) -> bool:
    """Whether somebody has paused its schedule: that is told at once, not only after the rounds that it misses."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await gateway.fleet.sweep_is_paused()
    except (EdgewrightError, TimeoutError):
        return False  # Temporal is what is away, and is named
