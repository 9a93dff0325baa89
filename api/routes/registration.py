"""Registration tokens, and the registration of edges."""

import secrets
from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends
from starlette.responses import JSONResponse, Response

from api.admission import AdmissionRoom, Registrant, TheAdmissionRoom, payer_of
from api.auth import ClusterOperator, actor_of
from api.bodies import JsonBody
from api.dependencies import EdgeOffer
from api.idempotency import as_json
from api.known_names import KnownCluster
from api.schemas.edge import NewRegistration, Registered, RegistrationLine, TokenWish
from api.stored_flux import stored_flux
from edgewright.application.lookup import open_cluster
from edgewright.bootstrap import bootstrap_line
from edgewright.domain.cluster import Acceptance
from edgewright.domain.credentials import SECRET_BYTES, TOKEN_ID_BYTES, registration_token, sha256_of
from edgewright.ports.operators import OperatorToken

NO_STORE = {"Cache-Control": "no-store"}
DEFAULT_EXPIRY = timedelta(hours=1)

router = APIRouter(tags=["bootstrap"])


@router.post(
    "/v1/cluster/{uuid}/bootstrap-url",
    summary="The URL of the bootstrap script, as ACS clients ask for it",
    response_model=str,
)
async def bootstrap_url(operator: ClusterOperator, uuid: KnownCluster, room: TheAdmissionRoom) -> Response:
    """Returns the URL as a JSON string; its token expires in an hour. Earlier unspent tokens become invalid."""
    url, _ = await _issue(room, uuid, DEFAULT_EXPIRY, operator)
    return JSONResponse(url, headers=NO_STORE)


@router.post(
    "/v1/cluster/{uuid}/registration-token",
    summary="Make a bootstrap line",
    response_model=RegistrationLine,
)
async def new_registration_token(
    *,
    operator: ClusterOperator,
    uuid: KnownCluster,
    wish: Annotated[TokenWish, Depends(JsonBody(TokenWish, optional=True))],
    room: TheAdmissionRoom,
) -> Response:
    """Earlier unspent tokens become invalid. Warns if the URL is only reachable from this machine."""
    url, expires_at = await _issue(room, uuid, timedelta(seconds=wish.expires_in), operator)
    stored = await stored_flux(room.config)
    agent = room.offer.agent_pod()
    line = RegistrationLine(
        url=url,
        command=bootstrap_line(url, ca_bundle=room.offer.ca_bundle),
        expires_at=expires_at,
        warning=_warning(room.offer),
        flux=stored[0].named if stored else None,
        agent_image=agent.image if agent else None,
        agent_image_served=agent is not None and room.offer.agent is None,
        ca_bundle=room.offer.ca_bundle,
    )
    return JSONResponse(as_json(line), headers=NO_STORE)


@router.post("/v1/register", summary="Register an edge cluster", response_model=Registered)
async def register(
    *,
    token: Registrant,
    wish: Annotated[NewRegistration, Depends(JsonBody(NewRegistration))],
    room: TheAdmissionRoom,
) -> Response:
    """The bootstrap script calls this. Binds the token to the edge's identity; the same edge may repeat the call."""
    room.edge_secrets.spend(payer_of(token), 1)
    registration = await room.edge_access.register(
        token_id=token.id,
        secret_sha256=token.secret_sha256,
        kube_system_uid=wish.kube_system_uid,
        kubernetes_version=wish.kubernetes_version,
        flux_sha256=sha256_of(wish.flux_secret),
        agent_sha256=sha256_of(wish.agent_secret),
    )
    await room.nudges.nudge(registration.cluster)
    registered = Registered(
        state="accepted" if registration.acceptance is Acceptance.ACCEPTED else "pending",
        short_code=registration.short_code,
        cluster=registration.cluster,
        generation=registration.generation,
    )
    return JSONResponse(as_json(registered), headers=NO_STORE)


async def _issue(
    room: AdmissionRoom, cluster: UUID, expires_in: timedelta, operator: OperatorToken
) -> tuple[str, datetime]:
    await open_cluster(room, cluster)
    token = registration_token(secrets.token_bytes(TOKEN_ID_BYTES), secrets.token_bytes(SECRET_BYTES))
    expires_at = await room.edge_access.issue_token(
        cluster, token_id=token.id, secret_sha256=token.sha256, expires_in=expires_in, actor=actor_of(operator)
    )
    return f"{room.offer.external_url}/v1/cluster/{cluster}/bootstrap?token={token.text}", expires_at


def _warning(offer: EdgeOffer) -> str | None:
    if not offer.external_url_is_loopback:
        return None
    return (
        f"{offer.external_url} is only reachable from this machine. Restart with `edgewright up --share`, or set "
        "EDGEWRIGHT_EXTERNAL_URL to the URL that edges reach."
    )
