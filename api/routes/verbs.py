"""The verbs: an operator's decisions about a cluster."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends
from starlette.responses import Response

from api.auth import Administrator, ClusterOperator, actor_of
from api.bodies import JsonBody
from api.cluster_room import ClusterRoom, TheClusterRoom
from api.edge_status import confirm_certificate
from api.known_names import KnownCluster
from api.presentation import cluster_body
from api.routes.clusters import shown
from api.schemas.cluster_wishes import ConfirmedCertificate, Reason
from api.schemas.clusters import ClusterBody, Revoked
from api.schemas.edge import RotationWanted, RotationWish
from edgewright.application.lookup import open_cluster
from edgewright.domain.absence import FRESH_LINE, rotation_obstacle
from edgewright.domain.cluster import StepName
from edgewright.domain.edge_status import EdgeStatus
from edgewright.domain.projection import Projection
from edgewright.errors import Conflict, Invalid
from edgewright.ports.operators import OperatorToken

router = APIRouter(tags=["verbs"])

OptionalReason = Annotated[Reason, Depends(JsonBody(Reason, optional=True))]


@router.post("/v1/cluster/{uuid}/accept", summary="Accept a registered cluster", response_model=ClusterBody)
async def accept(
    *, operator: ClusterOperator, uuid: KnownCluster, _wish: OptionalReason, room: TheClusterRoom
) -> Response:
    """Activates the edge's credentials. 409 if no edge has registered."""
    return await _answer(room, uuid, operator, accepted=True)


@router.post("/v1/cluster/{uuid}/reject", summary="Reject a registered cluster", response_model=ClusterBody)
async def reject(
    *, operator: ClusterOperator, uuid: KnownCluster, _wish: OptionalReason, room: TheClusterRoom
) -> Response:
    """Revokes the edge's credentials and releases its registration token."""
    return await _answer(room, uuid, operator, accepted=False)


@router.post(
    "/v1/cluster/{uuid}/certificate", summary="Confirm a proposed sealing certificate", response_model=ClusterBody
)
async def confirm_proposed_certificate(
    *,
    admin: Administrator,
    uuid: KnownCluster,
    wish: Annotated[ConfirmedCertificate, Depends(JsonBody(ConfirmedCertificate))],
    room: TheClusterRoom,
) -> Response:
    """A certificate that arrived by a signal is not used until you confirm it. 409 if it is not the proposed one."""
    await confirm_certificate(room, await open_cluster(room, uuid), wish.fingerprint, admin)
    await room.nudges.nudge(uuid)
    return await shown(room, await open_cluster(room, uuid))


@router.delete("/v1/cluster/{uuid}/credential", summary="Revoke both credentials")
async def revoke_credentials(*, operator: ClusterOperator, uuid: KnownCluster, room: TheClusterRoom) -> Revoked:
    """Takes effect at once on every gateway. Unspent registration tokens become invalid, too."""
    await open_cluster(room, uuid)
    revoked = await room.edge_access.revoke(uuid, actor=actor_of(operator))
    await room.nudges.nudge(uuid)
    return Revoked(revoked=revoked)


@router.post(
    "/v1/cluster/{uuid}/credential/rotate",
    status_code=202,
    summary="Rotate credentials",
    responses={409: {"description": "There is none to replace, or the edge says that it cannot replace it."}},
)
async def rotate_credentials(
    *,
    operator: ClusterOperator,
    uuid: KnownCluster,
    wish: Annotated[RotationWish, Depends(JsonBody(RotationWish, optional=True))],
    room: TheClusterRoom,
) -> RotationWanted:
    """The edge makes new ones with its next heartbeats; each old one stays valid until its successor is used."""
    row = await open_cluster(room, uuid)
    roles = sorted(set(wish.roles))
    obstacle = rotation_obstacle(row.edge_status or EdgeStatus(), roles)
    if obstacle is not None:
        raise Conflict(obstacle, code="rotation_impossible", hint=FRESH_LINE)
    reason = "An operator asked for it."
    if await room.edge_access.ask_rotation(uuid, roles, actor=actor_of(operator), reason=reason):
        await room.nudges.nudge(uuid)
    return RotationWanted(roles=roles)


@router.post("/v1/cluster/{uuid}/pause", summary="Pause commits")
async def pause(
    *, operator: ClusterOperator, uuid: KnownCluster, wish: OptionalReason, room: TheClusterRoom
) -> ClusterBody:
    """Stops commits until you resume them; heartbeats, revocation and deletion continue."""
    seen = (await open_cluster(room, uuid)).change
    projection = await room.fleet.pause(uuid, reason=wish.reason, actor=actor_of(operator), seen=seen)
    return await _paused_or_resumed(room, uuid, projection, paused=True)


@router.post("/v1/cluster/{uuid}/resume", summary="Resume commits")
async def resume(
    *, operator: ClusterOperator, uuid: KnownCluster, _wish: OptionalReason, room: TheClusterRoom
) -> ClusterBody:
    """Lets commits continue."""
    seen = (await open_cluster(room, uuid)).change
    projection = await room.fleet.resume(uuid, actor=actor_of(operator), seen=seen)
    return await _paused_or_resumed(room, uuid, projection, paused=False)


@router.post("/v1/cluster/{uuid}/step/{name}/retry", summary="Retry a step now")
async def retry_step(
    *, operator: ClusterOperator, uuid: KnownCluster, name: StepName, _wish: OptionalReason, room: TheClusterRoom
) -> ClusterBody:
    """Retries a waiting or blocked step; 409 if the step does not wait."""
    await open_cluster(room, uuid)
    return await _new_state(room, uuid, await room.fleet.retry_step(uuid, name, actor=actor_of(operator)))


@router.post("/v1/cluster/{uuid}/step/{name}/skip", summary="Skip a deletion step")
async def skip_step(
    *,
    operator: ClusterOperator,
    uuid: KnownCluster,
    name: StepName,
    wish: Annotated[Reason, Depends(JsonBody(Reason))],
    room: TheClusterRoom,
) -> ClusterBody:
    """Skips a deletion step on another system, for a reason that you give. What it leaves behind becomes residue."""
    await open_cluster(room, uuid)
    if not wish.reason.strip():
        raise Invalid("Skipping a step needs a reason.", code="reason_missing", where="/reason")
    projection = await room.fleet.skip_step(uuid, name, reason=wish.reason, actor=actor_of(operator))
    return await _new_state(room, uuid, projection)


async def _answer(room: ClusterRoom, uuid: UUID, operator: OperatorToken, *, accepted: bool) -> Response:
    await open_cluster(room, uuid)
    await room.edge_access.answer(uuid, accepted=accepted, actor=actor_of(operator))
    await room.nudges.nudge(uuid)
    return await shown(room, await open_cluster(room, uuid))


async def _new_state(room: ClusterRoom, uuid: UUID, projection: Projection) -> ClusterBody:
    return cluster_body(room.link_bases, await open_cluster(room, uuid), projection)


async def _paused_or_resumed(room: ClusterRoom, uuid: UUID, projection: Projection, *, paused: bool) -> ClusterBody:
    """Returns the new state. Raises ``Conflict``, code ``overtaken``, if a later wish changed it."""
    row = await open_cluster(room, uuid)
    if row.paused is not paused:
        raise Conflict(
            f"Somebody else has {'resumed' if paused else 'paused'} {row.spec.name} at the same time.",
            code="overtaken",
            hint="See how it is now, and decide again.",
        )
    return cluster_body(room.link_bases, row, projection)
