"""Repository and database that do not belong together: one of them was put back to an earlier state."""

import asyncio
import re
from dataclasses import dataclass
from uuid import UUID, uuid5

from edgewright.ports.clusters import Clusters
from edgewright.ports.git_server import GitServer

LOOK_BACK = 50
"""Commits among which the newest one of the centre is looked for; pushes bear no fence."""

_FENCE = re.compile(r"^Edgewright-Fence: \d+/(\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Drift:
    """What does not fit.

    Args:
        event: ID of the event that tells of it; the same for the same finding.
        message: what happened, what is lost, and what to do.
    """

    event: UUID
    message: str


async def find_drift(clusters: Clusters, git: GitServer, cluster: UUID) -> Drift | None:
    """Looks for what only a copy that was put back explains; None if everything fits.

    The log is read before the row, and the row before the head: a commit that is made meanwhile is no drift.

    Raises:
        EdgewrightError: what the ports raise.
    """
    log = await asyncio.to_thread(git.log, cluster, limit=LOOK_BACK)
    row = await clusters.get(cluster)
    if row is None or row.closed:
        return None
    desired = row.projection.desired_revision if row.projection else None
    head = await asyncio.to_thread(git.head, cluster)
    if desired and (head is None or not await asyncio.to_thread(git.is_ancestor, cluster, desired, head)):
        return Drift(
            uuid5(cluster, f"git.drifted {desired} {head}"),
            f"The repository has lost commit {desired[:12]}: an earlier copy of it was put back. The generated files "
            "are rendered again. Secrets that were written since that copy, and what was pushed to by-hand/, are "
            "lost: restore a newer copy, or enter and push them again.",
        )
    fences = (_FENCE.search(commit.message) for commit in log)
    newest = next((int(fence[1]) for fence in fences if fence), 0)
    if newest > row.change:
        return Drift(
            uuid5(cluster, f"git.drifted {log[0].commit} {newest}"),
            f"The repository was written for change {newest}, and the database knows only of {row.change}: an "
            "earlier copy of the database was put back. What it wants is rendered again. Everything else that was "
            "asked for since that copy is lost: docs/backup.md says what that means, and what to do.",
        )
    return None
