"""Clusters and what is wanted of them. Each write is committed before the workflow is nudged."""

import re
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BeforeValidator
from starlette.responses import Response

from api.auth import ClusterOperator, Reader, actor_of
from api.bodies import ENTRY_JSON, JsonBody
from api.cluster_room import ClusterRoom, TheClusterRoom
from api.idempotency import RememberedAnswer, as_json, first_answer, once_of
from api.known_names import KnownCluster
from api.log_context import about_cluster
from api.preconditions import precondition_of, quoted
from api.presentation import cluster_body, summary_body
from api.schemas.cluster_wishes import ClusterPatch, NewCluster, Recreation
from api.schemas.clusters import ClusterBody, ClusterList
from edgewright.application.configurations import SETTINGS_FIELDS, NewConfiguration
from edgewright.application.lookup import open_cluster
from edgewright.domain.cluster import ConditionStatus, Phase, Workloads
from edgewright.domain.ended import LONGEST_DEADLINE
from edgewright.errors import Invalid
from edgewright.ports.clusters import ClusterFilter, ClusterRow

router = APIRouter(tags=["clusters"])

SORTS = (
    "`name`, `phase`, `created`, `last_heard`; `trouble`, `blocked`, `healthy`, `synced`, `paused`: trouble first, "
    "then by name. `-` in front: downwards. The default is `name`, which never changes. Trouble comes and goes: "
    "pages sorted by it may leave out a cluster, or show one twice."
)
Status = Annotated[ConditionStatus, BeforeValidator(lambda text: str(text).capitalize())]
"""Whatever the case: `true` is what the other filters are spelled with."""
_DURATION = re.compile(r"(\d{1,9})([smhd]?)", re.ASCII)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


@router.get("/v1/cluster", summary="List clusters")
async def list_clusters(
    *,
    _operator: Reader,
    room: TheClusterRoom,
    phase: Phase | None = None,
    ready: bool | None = None,
    available: bool | None = None,
    blocked: bool | None = None,
    synced: Annotated[Status | None, Query(description="`True`, `False` or `Unknown`.")] = None,
    healthy: Annotated[Status | None, Query(description="`True`, `False` or `Unknown`.")] = None,
    paused: bool | None = None,
    label: Annotated[list[str] | None, Query(description="`key=value`; may be given several times.")] = None,
    name: Annotated[str | None, Query(description="A part of the name.")] = None,
    sort: Annotated[str, Query(description=SORTS)] = "name",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    after: Annotated[str | None, Query(description="The `next` of the previous page.")] = None,
) -> ClusterList:
    """Returns summaries. Removed and deleted clusters are only listed if `phase` asks for them."""
    page = await room.directory.page(
        ClusterFilter(
            phase=phase,
            ready=ready,
            available=available,
            blocked=blocked,
            synced=synced,
            healthy=healthy,
            paused=paused,
            labels=_labels(label or []),
            name=name,
            sort=sort,
            limit=limit,
            after=after,
        )
    )
    return ClusterList(items=[summary_body(item) for item in page.items], next=page.next)


@router.post("/v1/cluster", status_code=201, summary="Commission a cluster", response_model=ClusterBody)
async def create_cluster(
    *,
    operator: ClusterOperator,
    wish: Annotated[NewCluster, Depends(JsonBody(NewCluster, limits=ENTRY_JSON))],
    request: Request,
    room: TheClusterRoom,
) -> Response:
    """Writes the configuration entry and starts the workflow. `Location` and `ETag` are the cluster's. Honours
    `Idempotency-Key`. 422 `values_misfit`: the chart's schema does not allow the values."""
    once = once_of(request, operator, as_json(wish))

    async def create() -> RememberedAnswer:
        row = await room.configurations.create(once.uuid, _new_configuration(wish), actor=actor_of(operator))
        about_cluster(row.uuid)
        await room.nudges.nudge(row.uuid)
        return _outcome(room, row, 201)

    return await first_answer(room.idempotency, once, create)


@router.get("/v1/cluster/{uuid}", summary="Show a cluster", response_model=ClusterBody)
async def get_cluster(*, _operator: Reader, uuid: KnownCluster, room: TheClusterRoom) -> Response:
    """Returns everything about one cluster. `ETag` is the revision of its configuration and settings. *Synced* is
    true only if the repository has the present configuration at this moment, and the edge has what the repository
    holds. A repository that cannot be read within a second does not change the condition."""
    return await shown(room, await open_cluster(room, uuid))


@router.patch("/v1/cluster/{uuid}", summary="Change a cluster", response_model=ClusterBody)
async def patch_cluster(
    *,
    operator: ClusterOperator,
    uuid: KnownCluster,
    wish: Annotated[ClusterPatch, Depends(JsonBody(ClusterPatch, limits=ENTRY_JSON))],
    request: Request,
    room: TheClusterRoom,
) -> Response:
    """Takes a JSON merge patch. Changed files are committed; the cluster stays ready. Honours `If-Match`, with the
    `ETag` of the cluster or of its configuration entry. 422 `values_misfit`: the chart's schema does not allow the
    values.
    """
    row = await room.configurations.change(
        uuid,
        wish.model_dump(mode="json", exclude_unset=True),
        actor=actor_of(operator),
        precondition=precondition_of(request),
    )
    await room.nudges.nudge(uuid)
    return await shown(room, row)


@router.delete("/v1/cluster/{uuid}", status_code=202, summary="Delete a cluster", response_model=ClusterBody)
async def delete_cluster(
    *,
    operator: ClusterOperator,
    uuid: KnownCluster,
    request: Request,
    room: TheClusterRoom,
    force: Annotated[bool, Query(description="Does not wait for the edge.")] = False,
    deadline: Annotated[
        str | None,
        Query(description="How long to wait for the edge, such as `72h`. Default: as set before, or else 24 h."),
    ] = None,
    workloads: Workloads = Workloads.REMOVE,
    purge: Annotated[
        bool,
        Query(
            description="Removes the kind SealedSecret and the sealing keys from the edge, if nobody else uses them."
        ),
    ] = False,
) -> Response:
    """Requests the deletion; repeating the request does not start another one. Honours `Idempotency-Key`. With
    `purge`: 422 `purge_impossible` together with `force` or kept workloads; 409 `purge_impossible` if no edge can
    answer; 409 `purge_too_late` once a deletion without it has begun."""
    wait = None if deadline is None else duration(deadline, where="deadline")
    said = [force, wait and wait.total_seconds(), workloads.value, *(["purge"] if purge else [])]
    once = once_of(request, operator, said)

    async def delete() -> RememberedAnswer:
        row = await room.wishes.request_deletion(
            uuid, actor=actor_of(operator), force=force, deadline=wait, workloads=workloads, purge=purge
        )
        await room.nudges.nudge(uuid)
        return _outcome(room, row, 202)

    return await first_answer(room.idempotency, once, delete)


@router.post("/v1/cluster/{uuid}/undelete", summary="Cancel a deletion", response_model=ClusterBody)
async def undelete_cluster(*, operator: ClusterOperator, uuid: KnownCluster, room: TheClusterRoom) -> Response:
    """You can cancel a deletion until the removal commit; after that, 409 `too_late`."""
    row = await room.wishes.undelete(uuid, actor=actor_of(operator))
    await room.nudges.nudge(uuid)
    return await shown(room, row)


@router.post("/v1/cluster/{uuid}/recreate", status_code=202, summary="Recreate a cluster", response_model=ClusterBody)
async def recreate_cluster(
    *,
    operator: ClusterOperator,
    uuid: KnownCluster,
    wish: Annotated[Recreation, Depends(JsonBody(Recreation, limits=ENTRY_JSON, optional=True))],
    request: Request,
    room: TheClusterRoom,
) -> Response:
    """Removes and commissions the cluster in one durable operation. Honours `Idempotency-Key`. 422 `values_misfit`:
    the chart's schema does not allow the values."""
    once = once_of(request, operator, as_json(wish))
    changes = wish.model_dump(mode="json", exclude_unset=True, exclude={"new_hardware"})

    async def recreate() -> RememberedAnswer:
        row = await room.configurations.recreate(
            uuid, changes, actor=actor_of(operator), new_hardware=wish.new_hardware, request=once.uuid
        )
        await room.nudges.nudge(uuid)
        return _outcome(room, row, 202)

    return await first_answer(room.idempotency, once, recreate)


async def shown(room: ClusterRoom, row: ClusterRow) -> Response:
    """Returns the answer that shows a cluster, with its ETag."""
    body = cluster_body(room.link_bases, row, lack=await room.synced.lack(row)).model_dump_json(by_alias=True)
    return Response(body, headers=_etag(row), media_type="application/json")


def _new_configuration(wish: NewCluster) -> NewConfiguration:
    return NewConfiguration(
        name=wish.name,
        namespace=wish.namespace,
        chart=wish.chart,
        bare=wish.bare,
        values=wish.values,
        settings=wish.model_dump(mode="json", include=set(SETTINGS_FIELDS), exclude_none=True),
    )


def _outcome(room: ClusterRoom, row: ClusterRow, status: int) -> RememberedAnswer:
    location = {"Location": f"/v1/cluster/{row.uuid}"} if status == 201 else {}
    return RememberedAnswer(status, as_json(cluster_body(room.link_bases, row)), {**location, **_etag(row)})


def _etag(row: ClusterRow) -> dict[str, str]:
    return {"ETag": quoted(row.revision)} if row.revision else {}


def duration(text: str, *, where: str, longest: timedelta = LONGEST_DEADLINE) -> timedelta:
    """Reads a duration: seconds, or a number with ``s``, ``m``, ``h`` or ``d``.

    Raises:
        Invalid: code ``duration_invalid``.
    """
    match = _DURATION.fullmatch(text)
    if match is None or (length := timedelta(seconds=int(match[1]) * _SECONDS[match[2]])) > longest:
        raise Invalid(
            f"{where} is a number of seconds, or a number with s, m, h or d, of at most {longest.days} days.",
            code="duration_invalid",
            where=where,
        )
    return length


def _labels(texts: list[str]) -> dict[str, str]:
    labels = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise Invalid(
                "A label is given as key=value.",
                code="request_invalid",
                hint="For example ?label=site=sheffield.",
                where="query label",
            )
        labels[key] = value
    return labels
