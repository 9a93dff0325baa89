"""The namespaces that secrets are sealed for: whether there is room, and whether the edge has them. Blocks."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from uuid import UUID

from edgewright.domain.edge_status import EdgeStatus
from edgewright.domain.kubernetes_names import NAMESPACE_LIMIT
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


def check_namespaces(git: GitServer, cluster: UUID, head: CommitId | None, wanted: AbstractSet[str]) -> None:
    """Raises ``Invalid`` (``too_many_namespaces``) if there would be secrets in more namespaces than there may be."""
    if head is None or all(git.read(cluster, namespace_note_path(name), at=head) is not None for name in wanted):
        return
    used = used_namespaces(git.list(cluster, SECRETS_FOLDER.rstrip("/"), at=head))
    check_room(used, used | wanted)


def namespace_warnings(
    git: GitServer, row: ClusterRow, head: CommitId | None, wanted: Iterable[str]
) -> Sequence[str]:
    """A sentence for each of these namespaces that the edge does not have, and that no commit gives it.

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
