"""Who may attach a Kubernetes cluster, or fetch what is installed on it."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from api.access import Access, TheAccess
from api.allowances import Allowance
from api.auth import (
    FRESH_LINE,
    LEAVE,
    EdgeCaller,
    count_wrong,
    identify,
    match_registration_token,
    require,
    require_active,
)
from api.bodies import charge_bodies
from api.dependencies import EdgeOffer
from api.known_names import NameOrUuid, known_cluster
from api.log_context import about_cluster
from api.nudges import Nudges
from edgewright.application.lookup import open_cluster
from edgewright.domain.cluster import Desired, TokenState
from edgewright.domain.credentials import REGISTRATION_PREFIX
from edgewright.domain.names import spelled_uuid
from edgewright.errors import Forbidden, Unauthenticated
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.config_store import ConfigStore
from edgewright.ports.edge_access import EdgeAccess, RegistrationToken
from edgewright.ports.git_server import GitServer
from edgewright.ports.operators import Permission

REGISTRATION_BYTES = 2048
"""A registration has some 300."""
_REASONS = {
    TokenState.SPENT: "This registration token has been used: the cluster is attached.",
    TokenState.EXPIRED: "This registration token has expired.",
    TokenState.REPLACED: "This registration token was replaced by a newer one.",
}


@dataclass(frozen=True)
class AdmissionRoom:
    """What attaches edges. ``edge_secrets``: what each cluster may register in a while."""

    directory: ClusterDirectory
    config: ConfigStore
    edge_access: EdgeAccess
    git: GitServer
    offer: EdgeOffer
    edge_secrets: Allowance
    nudges: Nudges


async def admission_room_of(request: Request) -> AdmissionRoom:
    """Returns that of this request's application. Async, because FastAPI runs plain functions in threads."""
    room: AdmissionRoom = request.app.state.admission_room
    return room


TheAdmissionRoom = Annotated[AdmissionRoom, Depends(admission_room_of)]


async def admit(
    request: Request, access: Access, directory: ClusterDirectory, uuid: str, text: str
) -> tuple[RegistrationToken, ClusterRow]:
    """The registration token with that text, and the cluster that it attaches; nothing is spent.

    Args:
        uuid: of the cluster, as it stands in the path.

    Raises:
        Forbidden: the token is wrong, used up or another cluster's, or the cluster takes no edges any more.
    """
    token = await match_registration_token(access, text)
    if token is None:
        count_wrong(request, access)
        raise Forbidden("This registration token is not valid.", code="token_wrong", hint=FRESH_LINE)
    if str(token.cluster) != uuid.lower():
        raise Forbidden("This registration token belongs to another cluster.", code="token_foreign", hint=FRESH_LINE)
    _refuse_dead(token)
    row = await directory.get(token.cluster)
    if row is None or row.closed or row.desired is not Desired.PRESENT:
        raise Forbidden("This cluster is being deleted or was removed.", code="cluster_gone", hint=LEAVE)
    if token.generation != row.generation:
        raise Forbidden("This registration token is for earlier hardware.", code="token_replaced", hint=FRESH_LINE)
    return token, row


async def registration_door(request: Request, access: TheAccess) -> RegistrationToken:
    """The registration token that stands in ``Authorization: Bearer``, if it still attaches something.

    One that does not may repeat the registration that it was for: the answer may have been lost.

    Raises:
        Unauthenticated: none, or a wrong one.
        Forbidden: it is used up, expired or replaced, and what it sends is no repetition: it is not read.
    """
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthenticated("This needs a registration token.", hint="Send it as Authorization: Bearer.")
    token = await match_registration_token(access, text.strip())
    if token is None:
        count_wrong(request, access)
        raise Unauthenticated("The registration token is not valid.", hint=FRESH_LINE)
    about_cluster(token.cluster)
    if not _may_repeat(request):
        _refuse_dead(token)
    charge_bodies(request, access.edge_bodies, payer_of(token))
    return token


def payer_of(token: RegistrationToken) -> Hashable:
    """Whose allowances a registration counts against: the cluster's, but nobody else's once the token is used up."""
    return token.id if token.state in _REASONS else token.cluster


def _may_repeat(request: Request) -> bool:
    """Whether the body is as small as that of a registration, and says so."""
    length = request.headers.get("content-length", "")
    return "transfer-encoding" not in request.headers and length.isdecimal() and int(length) <= REGISTRATION_BYTES


def _refuse_dead(token: RegistrationToken) -> None:
    if token.state in _REASONS:
        raise Forbidden(_REASONS[token.state], code=f"token_{token.state.value}", hint=FRESH_LINE)


async def installer_door(uuid: NameOrUuid, request: Request, access: TheAccess, room: TheAdmissionRoom) -> ClusterRow:
    """A cluster, for whoever installs something on it: its registration token, its own credentials, an operator.

    Raises:
        Unauthenticated: no credentials, or wrong ones.
        Forbidden: those of another cluster, or of one that takes no edges or was not accepted.
    """
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and text.strip().startswith(f"{REGISTRATION_PREFIX}_"):
        return await _registrant(request, access, room.directory, uuid, text.strip())
    caller = await identify(request, access)
    if not isinstance(caller, EdgeCaller):
        require(caller, Permission.READ)
        return await open_cluster(room, await known_cluster(room.directory, uuid))
    if caller.cluster != spelled_uuid(uuid):
        raise Forbidden("A cluster installs nothing of another one.", code="cluster_foreign")
    return require_active(caller).row


async def _registrant(
    request: Request, access: Access, directory: ClusterDirectory, uuid: str, text: str
) -> ClusterRow:
    try:
        _, row = await admit(request, access, directory, uuid, text)
    except Forbidden as error:
        if error.code == "token_wrong":
            raise Unauthenticated(error.detail, hint=error.hint) from None
        raise
    about_cluster(row.uuid)
    return row


Registrant = Annotated[RegistrationToken, Depends(registration_door)]
