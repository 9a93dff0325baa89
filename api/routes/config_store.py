"""The Config Store that ACS clients use, on `/v1` and `/v2`.

Entries of clusters go through the same calls as the REST routes: writing a configuration entry creates the cluster,
and deleting it is the central removal.
"""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from api.auth import Caller, ClusterOperator, EdgeCaller, Reader, actor_of, require, require_active
from api.bodies import ENTRY_JSON, STATUS_JSON, JsonBody, json_object, json_value
from api.config_writes import StoreRoom, TheStoreRoom, delete_entry, demand_admin_for_schema, write_entry
from api.dependencies import TheConfig, TheDirectory
from api.edge_sessions import KnownToStore
from api.edge_status import take_report, take_status
from api.idempotency import as_json
from api.json_text import JsonLimits
from api.known_names import (
    NamedApplication,
    ObjectNameOrUuid,
    known_application,
    known_class,
    known_object,
)
from api.preconditions import not_modified, precondition_of, quoted
from api.schemas.config_store import NewObject, ObjectBody
from edgewright.application.configurations import despite_races
from edgewright.application.lookup import open_cluster, refuse_deleted
from edgewright.domain.cluster import Role
from edgewright.domain.merge_patch import apply_merge_patch
from edgewright.domain.names import spelled_uuid
from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION, APP_CLUSTER_SETTINGS, APP_CLUSTER_STATUS
from edgewright.errors import Forbidden, NotFound
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.config_store import ConfigStore, Precondition
from edgewright.ports.operators import OperatorToken, Permission

ENTRY = "/app/{app}/object/{object_uuid}"
OF_A_CLUSTER = frozenset({APP_CLUSTER_CONFIGURATION, APP_CLUSTER_SETTINGS})
"""Applications whose entries specify a cluster."""

_ENTRY_BODY = {"schema": {}, "example": {"name": "press-shop", "namespace": "edgewright"}}
_JSON_BODY = {"requestBody": {"required": True, "content": {"application/json": _ENTRY_BODY}}}
_PATCH_BODY = {"schema": {}, "example": {"values": {"replicas": 2, "old": None}}}
_MERGE_BODY = {"requestBody": {"required": True, "content": {"application/merge-patch+json": _PATCH_BODY}}}

_NEW: dict[int | str, dict[str, Any]] = {201: {"description": "The entry is new."}}
_THERE: dict[int | str, dict[str, Any]] = {200: {"description": "It was there already.", "model": ObjectBody}}
_SAME: dict[int | str, dict[str, Any]] = {304: {"description": "It has the revision that `If-None-Match` names."}}

router = APIRouter(tags=["config store"])


@router.get("/v1/app/{app}/object", summary="Objects with an entry")
@router.get("/v2/app/{app}/object", summary="Objects with an entry")
async def list_entries(_operator: Reader, app: NamedApplication, config: TheConfig) -> list[UUID]:
    """Returns the objects that have an entry for an Application, sorted."""
    return list(await config.objects(await known_application(config, app)))


@router.get("/v1" + ENTRY, summary="Read an entry", response_model=Any, responses=_SAME)
@router.get("/v2" + ENTRY, summary="Read an entry", response_model=Any, responses=_SAME)
async def get_entry(
    *,
    caller: KnownToStore,
    app: NamedApplication,
    object_uuid: ObjectNameOrUuid,
    request: Request,
    config: TheConfig,
    directory: TheDirectory,
) -> Response:
    """Returns an entry with its `ETag`; honours `If-None-Match`. An agent may read its cluster's status."""
    meant = await _admitted(caller, directory, app, object_uuid, Permission.READ)
    entry = await config.get(app, meant)
    if entry is None:
        await known_application(config, app)
        raise _no_entry(app, meant)
    headers = {"ETag": quoted(entry.etag)}
    if not_modified(request, entry.etag):
        return Response(status_code=304, headers=headers)
    return JSONResponse(entry.body, headers=headers)


@router.put("/v1" + ENTRY, status_code=204, summary="Write an entry", openapi_extra=_JSON_BODY, responses=_NEW)
@router.put("/v2" + ENTRY, status_code=204, summary="Write an entry", openapi_extra=_JSON_BODY, responses=_NEW)
async def put_entry(
    *,
    caller: KnownToStore,
    app: NamedApplication,
    object_uuid: ObjectNameOrUuid,
    request: Request,
    room: TheStoreRoom,
) -> Response:
    """Writes an entry; 201 if it is new. Honours `If-Match` and `If-None-Match`. An agent may write its cluster's
    status. 422 `values_misfit`: a chart's schema does not allow the values of a cluster or a Helm chart template."""
    meant = await _admitted(caller, room.directory, app, object_uuid, Permission.CLUSTERS)
    precondition = precondition_of(request)
    body = await json_value(request, _limits(app))
    existed = await room.config.get(app, meant) is not None
    await _write(room, app, meant, body, caller=caller, precondition=precondition)
    return await _written(room.config, app, meant, 204 if existed else 201)


@router.patch("/v1" + ENTRY, status_code=204, summary="Merge into an entry", openapi_extra=_MERGE_BODY)
@router.patch("/v2" + ENTRY, status_code=204, summary="Merge into an entry", openapi_extra=_MERGE_BODY)
async def patch_entry(
    *,
    caller: KnownToStore,
    app: NamedApplication,
    object_uuid: ObjectNameOrUuid,
    request: Request,
    room: TheStoreRoom,
) -> Response:
    """Takes a JSON merge patch, and creates the entry if there is none. Honours `If-Match`."""
    meant = await _admitted(caller, room.directory, app, object_uuid, Permission.CLUSTERS)
    precondition = precondition_of(request)
    patch = await json_value(request, _limits(app))
    names_none = precondition.match is None and precondition.none_match is None

    async def merge() -> None:
        entry = await room.config.get(app, meant)
        held = precondition
        if names_none:
            held = Precondition(match=frozenset({entry.etag})) if entry else Precondition(none_match=frozenset({"*"}))
        body = apply_merge_patch(entry.body if entry else None, patch)
        await _write(room, app, meant, body, caller=caller, precondition=held)

    await (despite_races(merge) if names_none else merge())
    return await _written(room.config, app, meant, 204)


@router.delete("/v1" + ENTRY, status_code=204, name="delete_entry", summary="Delete an entry")
@router.delete("/v2" + ENTRY, status_code=204, name="delete_entry", summary="Delete an entry")
async def delete_entry_route(
    *,
    operator: ClusterOperator,
    app: NamedApplication,
    object_uuid: ObjectNameOrUuid,
    request: Request,
    room: TheStoreRoom,
) -> Response:
    """Deletes an entry. For a configuration entry, this is the central removal, which leaves the edge untouched.
    Honours `If-Match`."""
    precondition = precondition_of(request)
    meant = await known_object(room.directory, app, object_uuid)
    demand_admin_for_schema(operator, app, meant)
    if not await delete_entry(room, app, meant, actor=actor_of(operator), precondition=precondition):
        raise _no_entry(app, meant)
    return Response(status_code=204)


@router.post("/v1/object", status_code=201, summary="Register an object", response_model=ObjectBody, responses=_THERE)
@router.post("/v2/object", status_code=201, summary="Register an object", response_model=ObjectBody, responses=_THERE)
async def create_object(
    _operator: ClusterOperator, wish: Annotated[NewObject, Depends(JsonBody(NewObject))], config: TheConfig
) -> Response:
    """201 for a new object, 200 for an existing one. 409 `wrong_class`: it belongs to another class. 404
    `class_unknown`."""
    uuid, created = await config.create_object(await known_class(config, wish.klass), wish.uuid)
    return JSONResponse(as_json(ObjectBody(uuid=uuid, klass=wish.klass)), 201 if created else 200)


def _limits(app: UUID) -> JsonLimits:
    return STATUS_JSON if app == APP_CLUSTER_STATUS else ENTRY_JSON


async def _admitted(
    caller: Caller, directory: ClusterDirectory, app: UUID, text: str, permission: Permission
) -> UUID:
    """Returns the object in a path to operators with the permission (`admin` to write schemas that the centre itself
    uses), and to a cluster's agent only its cluster, for its status. Nobody else can find out which names exist."""
    if isinstance(caller, OperatorToken):
        operator = require(caller, permission)
        object_ = await known_object(directory, app, text)
        if permission is not Permission.READ:
            demand_admin_for_schema(operator, app, object_)
        return object_
    own = caller.credential.role is Role.AGENT and spelled_uuid(text) == caller.cluster
    if app != APP_CLUSTER_STATUS or not own:
        raise Forbidden("An agent reads and writes the status of its own cluster, and nothing else.")
    require_active(caller)
    return caller.cluster


async def _write(
    room: StoreRoom,
    app: UUID,
    object_: UUID,
    body: Any,
    *,
    caller: Caller,
    precondition: Precondition,
) -> None:
    if app == APP_CLUSTER_STATUS:
        await _write_status(room, object_, body, caller=caller, precondition=precondition)
    else:
        writer = require(caller, Permission.CLUSTERS)
        await known_application(room.config, app)
        if app in OF_A_CLUSTER:
            refuse_deleted(await room.directory.get(object_))  # before the schema has something to say
        await write_entry(room, app, object_, body, actor=actor_of(writer), precondition=precondition)


async def _write_status(
    room: StoreRoom, cluster: UUID, body: Any, *, caller: Caller, precondition: Precondition
) -> None:
    if isinstance(caller, EdgeCaller):
        room.edge_statuses.spend(cluster, 1)
        status, generation = json_object(body), caller.row.generation
        differs = await take_report(room.statuses, cluster, generation, status, precondition=precondition)
    else:
        row = await open_cluster(room, cluster)
        differs = await take_status(room.statuses, row, json_object(body), caller, precondition=precondition)
    if differs:
        await room.nudges.nudge(cluster)


async def _written(config: ConfigStore, app: UUID, object_: UUID, status: int) -> Response:
    entry = await config.get(app, object_)
    return Response(status_code=status, headers={"ETag": quoted(entry.etag)} if entry else {})


def _no_entry(app: UUID, object_: UUID) -> NotFound:
    return NotFound(
        f"The Application {app} has no entry for the object {object_}.",
        code="entry_unknown",
        hint=f"GET /v1/app/{app}/object lists the objects that have one.",
    )
