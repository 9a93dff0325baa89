"""Who asks for a repository. Every edge does so all the time: no more is read than decides whether it may."""

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from api.access import Access
from api.auth import identified, matched
from api.git_guests import GitGuests
from api.nudges import Nudges
from api.stored_flux import FluxNamespace
from edgewright.adapters.git.http_backend import GitHttp
from edgewright.application.shared_repositories import SharedRepositories
from edgewright.domain.cluster import CredentialState
from edgewright.domain.credentials import CredentialSecret
from edgewright.ports.audit import AuditLog
from edgewright.ports.cluster_directory import ClusterDirectory
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


@dataclass(frozen=True)
class GitRoom:
    """What the Git routes of one gateway work with."""

    access: Access
    directory: ClusterDirectory
    audit: AuditLog
    git_http: GitHttp
    git_guests: GitGuests
    flux_namespace: FluxNamespace
    repositories: SharedRepositories
    nudges: Nudges


@dataclass(frozen=True, slots=True)
class GitCall:
    """One request for a repository; whether the caller may make it, the route decides."""

    caller: GitCaller
    request: Request
    room: GitRoom


async def identify_for_git(request: Request) -> GitCall:
    """The request with whoever makes it; raises like ``api.auth.identified``."""
    room: GitRoom = request.app.state.git_room
    caller = await identified(request, room.access, _match_guest)
    return GitCall(caller, request, room)


async def _match_guest(access: Access, cluster: UUID, spelled: CredentialSecret) -> EdgeGuest | None:
    holder = await access.edge_access.holder(cluster)
    if holder is None:
        return None
    credential = await matched(access, spelled, holder)
    return None if credential is None else EdgeGuest(credential, holder.name)


KnownToGit = Annotated[GitCall, Depends(identify_for_git)]
"""The one dependency of a Git route."""
