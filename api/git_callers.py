"""Who asks for a repository. Every edge does so all the time: no more is read than decides whether it may."""

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from api.auth import identified, matched
from api.gateway import Gateway
from api.live import TheGateway, TheLive
from edgewright.domain.cluster import CredentialState
from edgewright.domain.credentials import CredentialSecret
from edgewright.ports.edge_access import Credential
from edgewright.ports.operators import OperatorToken


@dataclass(frozen=True)
class EdgeGuest:
    """A credential of a cluster that matched, and the name of the cluster."""

    credential: Credential
    name: str

    @property
    def cluster(self) -> UUID:
        return self.credential.cluster

    @property
    def state(self) -> CredentialState:
        return self.credential.state


GitCaller = OperatorToken | EdgeGuest


async def identify_for_git(request: Request, gateway: TheGateway, live: TheLive) -> GitCaller:
    """The caller, whoever it is; raises like ``api.auth.identified``."""
    return await identified(request, gateway, live, _match_guest)


async def _match_guest(gateway: Gateway, cluster: UUID, spelled: CredentialSecret) -> EdgeGuest | None:
    holder = await gateway.edge_access.holder(cluster)
    if holder is None:
        return None
    credential = await matched(gateway, spelled, holder)
    return None if credential is None else EdgeGuest(credential, holder.name)


KnownToGit = Annotated[GitCaller, Depends(identify_for_git)]
"""Any valid caller; the route decides what it may do."""
