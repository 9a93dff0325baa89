"""The two accounts of a cluster, and their permissions."""

from uuid import UUID, uuid5

from edgewright.domain.cluster import Frozen, Role
from edgewright.domain.wellknown import PERMISSION_GIT_PULL, REPOSITORY_HELM_CHARTS


class Grant(Frozen):
    """Permission (well-known UUID) on a target (repository or object UUID)."""

    permission: UUID
    target: UUID


class Account(Frozen):
    """One principal. Its UUID follows from cluster and role, so there are never duplicates."""

    uuid: UUID
    cluster: UUID
    role: Role
    name: str
    grants: tuple[Grant, ...] = ()


def accounts_of(cluster: UUID, name: str) -> tuple[Account, ...]:
    """Returns *flux*, which reads its own repository and the shared charts, and *agent*, which needs no grants."""
    pulls = tuple(Grant(permission=PERMISSION_GIT_PULL, target=to) for to in (cluster, REPOSITORY_HELM_CHARTS))
    return (
        Account(uuid=uuid5(cluster, "flux"), cluster=cluster, role=Role.FLUX, name=f"flux/{name}", grants=pulls),
        Account(uuid=uuid5(cluster, "agent"), cluster=cluster, role=Role.AGENT, name=f"agent/{name}"),
    )
