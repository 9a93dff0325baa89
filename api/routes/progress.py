"""Progress of clusters: setup status, readiness, timeline, and residue of deletions."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import JSONResponse, Response

from api.auth import Reader
from api.event_streams import EventStreams
from api.idempotency import as_json
from api.known_names import KnownCluster
from api.preconditions import not_modified, quoted
from api.presentation import says_ready
from api.problems import answer_error
from api.schemas.clusters import Ready, ResidueList, ResidueOfCluster, Timeline
from edgewright.application.lookup import cluster_unknown, open_cluster
from edgewright.domain.cluster import Desired, Phase
from edgewright.domain.projection import HELD_UP, Projection
from edgewright.domain.verdicts import BEING_DELETED, NOT_BEGUN, REMOVED, UNDER_WAY, awaited
from edgewright.domain.wellknown import APP_CLUSTER_SETUP_STATUS
from edgewright.errors import EdgewrightError, Waiting
from edgewright.ports.audit import LAST_POSITION, AuditLog
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.clusters import ClusterFilter, ClusterRow
from edgewright.ports.config_store import ConfigStore
from edgewright.ports.fleet import Fleet

router = APIRouter(tags=["progress"])

LONGEST_WAIT = 60.0
POLL_SECONDS = (0.05, 0.5)
"""First and longest pause between two reads of the projection."""
QUERY_SECONDS = 2.0
PAGE = 1000


@dataclass(frozen=True)
class ProgressRoom:
    """Ports for the progress and events of clusters. ``closing``: set when long answers have to end."""

    directory: ClusterDirectory
    config: ConfigStore
    audit: AuditLog
    fleet: Fleet
    event_streams: EventStreams
    closing: asyncio.Event


async def progress_room_of(request: Request) -> ProgressRoom:
    """Returns that of this request's application. Async, because FastAPI runs plain functions in threads."""
    room: ProgressRoom = request.app.state.progress_room
    return room


TheProgressRoom = Annotated[ProgressRoom, Depends(progress_room_of)]


@router.get(
    "/v1/cluster/{uuid}/status",
    summary="Setup status, as ACS clients read it",
    response_model=dict[str, Any],
    responses={304: {"description": "It has the revision that `If-None-Match` names."}},
)
async def setup_status(*, _operator: Reader, uuid: KnownCluster, request: Request, room: TheProgressRoom) -> Response:
    """`ready: true` once the cluster is commissioned. 404: it is unknown or removed. 410: it was deleted.

    Honours `If-None-Match`.
    """
    entry = await room.config.get(APP_CLUSTER_SETUP_STATUS, uuid)
    if entry is None:
        if (await open_cluster(room, uuid)).desired is not Desired.PRESENT:
            raise cluster_unknown(uuid)
        return JSONResponse({"ready": False})
    if not_modified(request, entry.etag):
        return Response(status_code=304, headers={"ETag": quoted(entry.etag)})
    return JSONResponse(entry.body, headers={"ETag": quoted(entry.etag)})


@router.get(
    "/v1/cluster/{uuid}/ready",
    summary="Wait until a cluster is ready",
    response_model=Ready,
    responses={503: {"description": "Not yet; says what is waited for."}},
)
async def ready(
    *,
    _operator: Reader,
    uuid: KnownCluster,
    request: Request,
    room: TheProgressRoom,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="Seconds.")] = 0.0,
) -> Response:
    """Asks the workflow. If it does not answer, returns what it published last, marked with `as_of`."""
    until = time.monotonic() + wait
    pause, longest = POLL_SECONDS
    row = await open_cluster(room, uuid)
    while not _published_ready(row) and time.monotonic() < until and not room.closing.is_set():
        await asyncio.sleep(min(pause, max(0.0, until - time.monotonic())))
        pause = min(pause * 1.5, longest)
        row = await open_cluster(room, uuid)
    projection, as_of = await _asked(room.fleet, row)
    if says_ready(projection, row) and row.desired is Desired.PRESENT:
        return JSONResponse(as_json(Ready(as_of=as_of)))
    error = Waiting(_what_for(row, projection), code="not_ready", retry_after=1.0)
    known = {"ready": False, "as_of": as_of.isoformat() if as_of else None, "waiting_for": error.detail}
    return answer_error(request, error, more=known)


@router.get("/v1/cluster/{uuid}/timeline", summary="Timeline of a cluster")
async def timeline(
    *,
    _operator: Reader,
    uuid: KnownCluster,
    room: TheProgressRoom,
    after: Annotated[int, Query(ge=0, le=LAST_POSITION, description="The `next` of the previous page.")] = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE)] = PAGE,
) -> Timeline:
    """Returns all events since the UUID was created, even after the deletion.

    A page holds the events that were written next, in the order in which they happened. Events of workflows are
    written a moment after they happen.
    """
    row = await room.directory.get(uuid)
    items = await room.audit.timeline(uuid, after=after, limit=limit)
    if row is None and not items and after == 0:
        raise cluster_unknown(uuid)
    projection = row.projection if row is not None and not row.closed else None
    return Timeline(
        items=sorted(items, key=lambda event: (event.at, event.position)),
        next=items[-1].position if len(items) == limit else None,
        waiting_for=awaited(projection) if projection else "",
        waiting=[step for step in projection.steps if step.state in HELD_UP] if projection else [],
    )


@router.get("/v1/residue", summary="Residue of deletions")
async def residue(*, _operator: Reader, room: TheProgressRoom) -> ResidueList:
    """Lists what deletions could not clean up, until it is cleaned up."""
    found = []
    for phase in (Phase.DETACHING, Phase.DELETED):
        async for row in _rows(room.directory, phase):
            left = row.projection.residue if row.projection else ()
            if left:
                found.append(ResidueOfCluster(cluster=row.uuid, name=row.spec.name, residue=list(left)))
    return ResidueList(items=found)


async def _rows(directory: ClusterDirectory, phase: Phase) -> AsyncIterator[ClusterRow]:
    after: str | None = None
    while True:
        page = await directory.page(ClusterFilter(phase=phase, limit=500, after=after))
        for item in page.items:
            row = await directory.get(item.uuid)
            if row is not None:
                yield row
        after = page.next
        if after is None:
            return


def _published_ready(row: ClusterRow) -> bool:
    """Whether the projection says that the cluster is ready."""
    return says_ready(row.projection, row)


async def _asked(fleet: Fleet, row: ClusterRow) -> tuple[Projection | None, datetime | None]:
    try:
        async with asyncio.timeout(QUERY_SECONDS):
            return await fleet.readiness(row.uuid), None
    except (EdgewrightError, TimeoutError):
        return row.projection, row.projected_at


def _what_for(row: ClusterRow, projection: Projection | None) -> str:
    if row.desired is Desired.REMOVED:
        return REMOVED
    if row.desired is Desired.DELETED:
        return BEING_DELETED
    if projection is None:
        return NOT_BEGUN
    return projection.waiting_for or UNDER_WAY
