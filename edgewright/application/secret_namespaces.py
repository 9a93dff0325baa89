"""The namespaces that secrets are sealed for: whose they are, whether there is room, whether the edge has them."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from uuid import UUID

from edgewright.domain.edge_status import EdgeStatus
from edgewright.domain.flux_bundle import FLUX_NAMESPACE
from edgewright.domain.kubernetes_names import (
    EDGEWRIGHT_NAMESPACE,
    KUBERNETES_NAMESPACE,
    NAMESPACE_LIMIT,
    SecretReference,
)
from edgewright.domain.own_objects import EDGEWRIGHT, FLUX, FLUX_SECRET, KUBERNETES
from edgewright.domain.rendering import SECRETS_FOLDER
from edgewright.domain.rendering.secret_drivers import (
    check_room,
    namespace_manifest_path,
    namespace_note_path,
    used_namespaces,
)
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.git_server import CommitId, GitServer

MOST_WARNINGS = 10
OWN_PREFIX = "edgewright-"
"""Secrets of the product itself begin so, on every edge; but ``FLUX_SECRET``."""


def reserved_namespaces(row: ClusterRow, *, flux: str) -> Mapping[str, str]:
    """Namespaces of the edge that are not the operator's, into which nothing is sealed -> whose they are.

    Programs there have all rights on the edge, or hold its sealing key and its credentials, and read what to do from
    Secrets: whoever writes those reads, in the end, the secrets of others.

    Args:
        flux: the namespace of the Flux that edges get.
    """
    return {
        row.spec.namespace: EDGEWRIGHT,  # first: whoever names another's namespace for a cluster opens nothing of it
        FLUX_NAMESPACE: FLUX,
        flux: FLUX,
        KUBERNETES_NAMESPACE: KUBERNETES,
    }


def is_reserved(secret: SecretReference, *, reserved: Mapping[str, str]) -> bool:
    """Whoever has another namespace than Edgewright's own may have workloads there, too, as ACS has."""
    if reserved.get(secret.namespace) != EDGEWRIGHT or secret.namespace == EDGEWRIGHT_NAMESPACE:
        return secret.namespace in reserved
    return secret.name == FLUX_SECRET or secret.name.startswith(OWN_PREFIX)


def check_namespaces(git: GitServer, cluster: UUID, head: CommitId | None, wanted: AbstractSet[str]) -> None:
    """Raises ``Invalid`` (``too_many_namespaces``) if there would be secrets in more namespaces than there may be.

    Blocks.
    """
    if head is None or all(git.read(cluster, namespace_note_path(name), at=head) is not None for name in wanted):
        return
    used = used_namespaces(git.list(cluster, SECRETS_FOLDER.rstrip("/"), at=head))
    check_room(used, used | wanted)


def namespace_warnings(
    git: GitServer, row: ClusterRow, head: CommitId | None, wanted: Iterable[str]
) -> Sequence[str]:
    """A sentence for each of these namespaces that the edge does not have, and that no commit gives it. Blocks.

    None at all where the edge has not said which it has.
    """
    known = _reported_namespaces(row.edge_status)
    if known is None:
        return ()
    missing = [
        name
        for name in sorted(set(wanted) - known)
        if head is None or git.read(row.uuid, namespace_manifest_path(name), at=head) is None
    ]
    left = len(missing) - MOST_WARNINGS
    more = [f"Nor does it have {left} more of these namespaces."] if left > 0 else []
    return [*map(_warning, missing[:MOST_WARNINGS]), *more]


def _reported_namespaces(status: EdgeStatus | None) -> AbstractSet[str] | None:
    """The names of all namespaces of an edge; None: it does not say, or not of all of them."""
    if status is None or status.namespaces is None or status.omitted.get("namespaces"):
        return None
    return {name for name in status.namespaces if len(name) <= NAMESPACE_LIMIT}


def _warning(namespace: str) -> str:
    return (
        f"The edge does not have the namespace {namespace}: its secrets arrive once it exists. "
        "Create it, or set the secret again with create_namespace."
    )
