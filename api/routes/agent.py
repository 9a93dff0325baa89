"""Heartbeats, statuses and credentials from the agent of a cluster, and the centre's answers."""

import re
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from api.agent_callers import AgentCall, AgentCaller, FromAgent
from api.agent_room import AgentRoom
from api.auth import require_active
from api.bodies import STATUS_JSON, JsonBody, json_object, json_value
from api.edge_status import status_digest, take_report
from api.held_answers import HeldAnswer
from api.orders import HeldOrders, detach_order, heartbeat_json, may_wait, not_detaching, told_to
from api.reach import link_of, reach_of
from api.schemas.edge import CredentialBody, DetachOrder, Goodbye, HeartbeatAnswer, HeartbeatWish, NewCredential
from edgewright.domain.cluster import CredentialState, Desired
from edgewright.domain.credentials import parse_cluster_secret
from edgewright.domain.ended import Purge
from edgewright.domain.reach import Reach
from edgewright.domain.wellknown import APP_CLUSTER_STATUS
from edgewright.errors import Invalid
from edgewright.ports.edge_reports import Heartbeat

STATUS_DIGEST_HEADER = "Edgewright-Status-Digest"

_COMMIT = re.compile(r"(?:.*[:/@])?([0-9a-f]{40})")

router = APIRouter(tags=["agent"])


@router.post(
    "/v1/agent/heartbeat",
    summary="Send a heartbeat",
    response_model=HeartbeatAnswer,
)
async def heartbeat(
    call: Annotated[AgentCall[HeartbeatWish], Depends(FromAgent(JsonBody(HeartbeatWish, optional=True)))],
) -> Response:
    """Renews the lease and returns what the centre wants; with `wait`, as soon as that changes."""
    agent, wish, room = call.agent, call.body, call.room
    if agent.state is CredentialState.ACTIVE:
        room.heartbeats.add(_beat(room, agent, wish, reach_of(wish)))
        if wish.inventory_empty and agent.orders.desired is Desired.DELETED:
            await room.edge_reports.inventory_empty(agent.cluster, agent.generation)
            await room.nudges.nudge(agent.cluster)
    told = await told_to(agent, wish, room)
    if may_wait(told, wish):
        return HeldAnswer(HeldOrders(agent, wish, told, room))
    return Response(heartbeat_json(told), media_type="application/json")


@router.put(
    "/v1/agent/status",
    status_code=204,
    summary="Report the edge's status",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EdgeStatus"}}},
        }
    },
)
async def put_status(call: Annotated[AgentCall[None], Depends(FromAgent(demand=require_active))]) -> Response:
    """Stores hosts, sealing certificate, versions and observed revision; an unchanged status has no effect. Send
    `Edgewright-Status-Digest` with the next heartbeat."""
    agent, room = call.agent, call.room
    room.edge_statuses.spend(agent.cluster, 1)
    body = json_object(await json_value(call.request, STATUS_JSON))
    applied = observed_commit(body.get("observed_revision"))
    if applied is not None:
        room.heartbeats.add(Heartbeat(agent.cluster, agent.generation, observed_revision=applied))
    if await take_report(room.statuses, agent.cluster, agent.generation, body):
        room.nudges.nudge_many([agent.cluster])
    stored = await room.config.get(APP_CLUSTER_STATUS, agent.cluster)
    return Response(status_code=204, headers={STATUS_DIGEST_HEADER: status_digest(stored, body)})


@router.post("/v1/agent/credential", summary="Register the successor of a credential")
async def rotate_credential(
    call: Annotated[AgentCall[NewCredential], Depends(FromAgent(JsonBody(NewCredential), demand=require_active))],
) -> CredentialBody:
    """The credential is pending until its first use, which revokes the previous one; until then, both work."""
    agent, wish, room = call.agent, call.body, call.room
    room.edge_secrets.spend(agent.cluster, 1)
    secret = parse_cluster_secret(wish.secret)
    if secret.role is not wish.role:
        raise Invalid("The secret is spelled for the other role.", code="request_invalid", where="/secret")
    state = await room.edge_access.add_rotated(agent.cluster, wish.role, secret.sha256, actor="agent")
    return CredentialBody(role=wish.role, state=state)


@router.post("/v1/agent/detached", status_code=204, summary="Say goodbye")
async def detached(
    call: Annotated[AgentCall[Goodbye], Depends(FromAgent(JsonBody(Goodbye, optional=True)))],
) -> Response:
    """Reports that the edge has removed what bootstrap installed. 409 unless the centre ordered it to detach."""
    agent, said = call.agent, call.body
    if detach_order(agent) is None:
        raise not_detaching()
    purge = Purge(done=said.purged, problem=" ".join((said.purge_problem or "").split()))
    await call.room.edge_reports.goodbye(agent.cluster, agent.generation, purge)
    if not agent.orders.closed:
        await call.room.nudges.nudge(agent.cluster)
    return Response(status_code=204)


@router.get("/v1/agent/detach-order", name="detach_order", summary="The order to detach")
async def the_detach_order(call: Annotated[AgentCall[None], Depends(FromAgent())]) -> DetachOrder:
    """Returns the same order as the answer to a heartbeat. 409 `not_detaching`: the edge is not to detach."""
    order = detach_order(call.agent)
    if order is None:
        raise not_detaching()
    return order


def observed_commit(revision: object) -> str | None:
    """Returns the commit in one of Flux's revisions (``main@sha1:…``), or None if it has none."""
    match = _COMMIT.fullmatch(revision) if isinstance(revision, str) else None
    return match[1] if match else None


def _beat(room: AgentRoom, agent: AgentCaller, wish: HeartbeatWish, reach: Reach | None) -> Heartbeat:
    offset = None
    if wish.sent_at is not None and wish.sent_at.tzinfo is not None:
        offset = (wish.sent_at - datetime.now(UTC)).total_seconds()
    return Heartbeat(
        cluster=agent.cluster,
        generation=agent.generation,
        clock_offset=offset,
        observed_revision=observed_commit(wish.observed_revision),
        link=link_of(wish),
        reach=reach,
        is_where_wanted=reach is not None and room.door is not None and room.door.is_used(reach),
        is_usual=reach is not None and reach.url == room.external_url,
        asks_flux=wish.asks_flux,
    )
