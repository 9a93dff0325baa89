"""What the agent of a cluster says, and what it is told."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from api.auth import AcceptedAgent, Agent, EdgeCaller
from api.bodies import STATUS_JSON, JsonBody, json_object, json_value
from api.detaching import detach_order, not_detaching
from api.edge_status import status_digest, take_status
from api.gateway import Gateway
from api.live import TheGateway, TheLive
from api.reach import link_of, reach_of, told_when, told_where
from api.rotation import wanted_rotations
from api.routes.resealing import MOST_WANTED
from api.schemas.edge import CredentialBody, HeartbeatAnswer, HeartbeatWish, NewCredential
from edgewright.domain.cluster import CredentialState, Desired, Order
from edgewright.domain.credentials import parse_cluster_secret
from edgewright.domain.reach import Reach
from edgewright.domain.wellknown import APP_CLUSTER_STATUS
from edgewright.errors import Invalid
from edgewright.ports.edge_reports import Heartbeat

STATUS_DIGEST_HEADER = "Edgewright-Status-Digest"
SHORTEST_INTERVAL = 5
"""Seconds between two heartbeats, however short the lease."""

_COMMIT = re.compile(r"(?:.*[:/@])?([0-9a-f]{40})")

router = APIRouter(tags=["agent"])


@router.post("/v1/agent/heartbeat", summary="A sign of life", response_model_exclude_none=True)
async def heartbeat(
    *,
    agent: Agent,
    wish: Annotated[HeartbeatWish, Depends(JsonBody(HeartbeatWish, optional=True))],
    gateway: TheGateway,
    live: TheLive,
) -> HeartbeatAnswer:
    """Renews the lease, and says what the centre wants."""
    interval = max(SHORTEST_INTERVAL, agent.row.settings.lease_seconds // 3)
    when = told_when(agent.row.settings, datetime.now(UTC))
    told = HeartbeatAnswer(state=agent.state.value, interval=interval, nonce=wish.nonce, **when)
    match agent.state:
        case CredentialState.PENDING:
            return told
        case CredentialState.SUSPENDED:
            return told.model_copy(update={"suspended": True})
        case CredentialState.ACTIVE:
            reach = reach_of(wish)
            live.heartbeats.add(_beat(gateway, agent, wish, reach))
            if wish.inventory_empty and agent.row.desired is Desired.DELETED:
                await gateway.edge_reports.inventory_empty(agent.cluster, agent.row.generation)
                await live.nudges.nudge(agent.cluster)
            flux = bytes.fromhex(wish.flux_sha256) if wish.flux_sha256 else None
            rotate = await wanted_rotations(gateway, agent, flux_sha256=flux)
            reseal = await _stale(gateway, agent)
            where = told_where(gateway, agent, reach)
            return told.model_copy(update={**_wanted(agent, wish), **where, "rotate": rotate, "reseal": reseal})
        case _:
            return told.model_copy(update={"detach": True, "detach_order": detach_order(agent)})


@router.put(
    "/v1/agent/status",
    status_code=204,
    summary="The edge's status",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EdgeStatus"}}},
        }
    },
)
async def put_status(agent: AcceptedAgent, request: Request, gateway: TheGateway, live: TheLive) -> Response:
    """Hosts, sealing certificate, versions, observed revision. Unchanged: nothing happens. `Edgewright-Status-Digest`
    is for the next heartbeat."""
    live.edge_statuses.spend(agent.cluster, 1)
    body = json_object(await json_value(request, STATUS_JSON))
    applied = observed_commit(body.get("observed_revision"))
    if applied is not None:
        live.heartbeats.add(Heartbeat(agent.cluster, agent.row.generation, observed_revision=applied))
    if await take_status(gateway, agent.row, body, agent):
        await live.nudges.nudge(agent.cluster)
    stored = await gateway.config.get(APP_CLUSTER_STATUS, agent.cluster)
    return Response(status_code=204, headers={STATUS_DIGEST_HEADER: status_digest(stored, body)})


@router.post("/v1/agent/credential", summary="Register the successor of a credential")
async def rotate_credential(
    *,
    agent: AcceptedAgent,
    wish: Annotated[NewCredential, Depends(JsonBody(NewCredential))],
    gateway: TheGateway,
    live: TheLive,
) -> CredentialBody:
    """Pending until its first use, which revokes the older one; until then both work."""
    live.edge_secrets.spend(agent.cluster, 1)
    secret = parse_cluster_secret(wish.secret)
    if secret.role is not wish.role:
        raise Invalid("The secret is spelled for the other role.", code="request_invalid", where="/secret")
    state = await gateway.edge_access.add_rotated(agent.cluster, wish.role, secret.sha256, actor="agent")
    return CredentialBody(role=wish.role, state=state.value)


@router.post("/v1/agent/detached", status_code=204, summary="Goodbye")
async def detached(agent: Agent, gateway: TheGateway, live: TheLive) -> Response:
    """The edge has removed what bootstrap installed. 409 unless it was told to."""
    if detach_order(agent) is None:
        raise not_detaching()
    await gateway.edge_reports.goodbye(agent.cluster, agent.row.generation)
    if not agent.row.closed:
        await live.nudges.nudge(agent.cluster)
    return Response(status_code=204)


def observed_commit(revision: object) -> str | None:
    """The commit in a revision as Flux spells it (``main@sha1:…``); None if there is none."""
    match = _COMMIT.fullmatch(revision) if isinstance(revision, str) else None
    return match[1] if match else None


def _beat(gateway: Gateway, agent: EdgeCaller, wish: HeartbeatWish, reach: Reach | None) -> Heartbeat:
    offset = None
    if wish.sent_at is not None and wish.sent_at.tzinfo is not None:
        offset = (wish.sent_at - datetime.now(UTC)).total_seconds()
    return Heartbeat(
        cluster=agent.cluster,
        generation=agent.row.generation,
        clock_offset=offset,
        observed_revision=observed_commit(wish.observed_revision),
        link=link_of(wish),
        reach=reach,
        is_where_wanted=reach is not None and gateway.door is not None and gateway.door.is_used(reach),
        is_usual=reach is not None and reach.url == gateway.external_url,
    )


async def _stale(gateway: Gateway, agent: EdgeCaller) -> list[str]:
    """Secrets that the edge is to re-seal now."""
    if agent.row.resealing is None or agent.row.desired is not Desired.PRESENT:
        return []
    return list(await gateway.resealings.wanted(agent.cluster, limit=MOST_WANTED))


def _wanted(agent: EdgeCaller, wish: HeartbeatWish) -> dict[str, Any]:
    known = agent.row.status_etag
    projection = agent.row.projection
    report_empty = projection is not None and projection.order is Order.REPORT_EMPTY
    order = detach_order(agent)
    return {
        "status_due": known is None or (wish.status_digest is not None and wish.status_digest != known),
        "suspended": False,
        "report_empty": report_empty,
        "revision": projection.desired_revision if projection is not None and report_empty else None,
        "detach": order is not None,
        "detach_order": order,
    }
