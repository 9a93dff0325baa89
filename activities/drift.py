"""Detects a repository and a database that do not match, because an earlier copy of one of them was put back."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid5

from edgewright.domain.kubernetes_names import StoredPlace
from edgewright.ports.audit import RecordedCommit
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.cluster_steps import ClusterSteps
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.git_server import CommitId, CommitSummary, GitServer

LOOK_BACK = 200
"""Most commits of the repository that are compared with the database, and the first number of its known commits."""
FARTHEST = 12_800
"""Most events that are compared. The search goes back while all are lost: one request makes hundreds of events."""
MOST_NAMED = 10
"""How many commits or secrets one sentence names."""

_FENCE = re.compile(r"^Edgewright-Fence: \d+/(\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Drift:
    """A mismatch between repository and database.

    Args:
        event: ID of its event; the same for the same finding.
        message: what happened, what is lost, and what to do.
        lost: secrets whose newest value is lost -> the commit that it was in.
        change: the newest change that the repository was written for; 0: none that the database does not know.
        mended: the cluster was rendered again since.
    """

    event: UUID
    message: str
    lost: Mapping[StoredPlace, CommitId] = field(default_factory=dict)
    change: int = 0
    mended: bool = False


async def note_drift(directory: ClusterDirectory, steps: ClusterSteps, git: GitServer, cluster: UUID) -> str | None:
    """Records a mismatch that only a put-back copy explains, or the end of the last one.

    Returns:
        Why the cluster must be rendered again; empty if an earlier finding has ended; None: nothing new.

    Raises:
        EdgewrightError: what the ports raise.
    """
    # The log is read before the database, and that before the head: a commit that is made meanwhile is no drift.
    log = await asyncio.to_thread(git.log, cluster, limit=LOOK_BACK)
    row = await directory.get(cluster)
    if row is None or row.closed:
        return None
    drift = await _compare(steps, git, row, log)
    if drift is not None and await steps.record_drift(
        cluster,
        drift.message,
        event=drift.event,
        lost=drift.lost,
        change=drift.change,
        mended=drift.mended,
        secrets_commit=row.secrets_commit,
    ):
        return drift.message
    if row.drift:
        lost = await steps.lost_in_drift(cluster)
        back = await asyncio.to_thread(_those_there, git, cluster, lost)
        if await steps.end_drift(cluster, back=back, mended=drift is None or drift.mended):
            return ""
    return None


async def _compare(
    steps: ClusterSteps, git: GitServer, row: ClusterRow, log: Sequence[CommitSummary]
) -> Drift | None:
    limit = min(LOOK_BACK, FARTHEST)
    while True:
        recorded = await steps.recorded_commits(row.uuid, limit=limit)
        drift, all_seen = await asyncio.to_thread(_find_drift, git, row, log, recorded)
        if all_seen or len(recorded) < limit:
            return drift
        if limit >= FARTHEST:
            farther = f" More may be lost: only the newest {limit} events of commits were compared."
            return replace(drift, message=drift.message + farther) if drift else None
        limit = min(limit * 4, FARTHEST)


def _those_there(git: GitServer, cluster: UUID, lost: Mapping[StoredPlace, CommitId]) -> set[StoredPlace]:
    """Returns the secrets whose lost value came back with a newer copy of the repository."""
    head = git.head(cluster)
    there = {commit: head is not None and git.is_ancestor(cluster, commit, head) for commit in set(lost.values())}
    return {place for place, commit in lost.items() if there[commit]}


def _find_drift(
    git: GitServer, row: ClusterRow, log: Sequence[CommitSummary], recorded: Sequence[RecordedCommit]
) -> tuple[Drift | None, bool]:
    """Returns the mismatch, and whether the comparison covered everything that is lost."""
    head = git.head(row.uuid)
    known = {commit.commit for commit in log}

    def is_there(commit: CommitId) -> bool:
        return commit in known or (head is not None and git.is_ancestor(row.uuid, commit, head))

    # The workflow may have forgotten its newest rendering; the row has not.
    wanted = (row.projection.desired_revision if row.projection else None, row.rendered_commit)
    missing = [commit for commit in dict.fromkeys(wanted) if commit and not is_there(commit)]
    mended = not missing
    seen = {commit: is_there(commit) for commit in dict.fromkeys(each.commit for each in recorded)}
    is_enough = len(seen) >= LOOK_BACK
    lost = [each for each in recorded if not seen[each.commit]]
    if lost or not mended:
        commits = list(dict.fromkeys([*missing, *(each.commit for each in lost)]))
        written = _newest_words(lost, recorded)
        # A finding keeps its name for as long as the same commits are lost, and loses it when more are.
        newest, oldest = (lost[0].commit, lost[-1].commit) if lost else (commits[0], commits[0])
        event = uuid5(row.uuid, f"git.drifted {newest} {oldest}")
        drift = Drift(event, _what_is_lost(commits, lost, written), lost=written, mended=mended)
        return drift, seen[recorded[-1].commit] if lost else is_enough
    fences = (_FENCE.search(commit.message) for commit in log)
    newest_change = next((int(fence[1]) for fence in fences if fence), 0)
    if newest_change > row.change:
        drift = Drift(
            uuid5(row.uuid, f"git.drifted {log[0].commit} {newest_change}"),
            f"The repository was written for change {newest_change}, and the database knows only of {row.change}: an "
            "earlier copy of the database was put back. The files are rendered again from this copy. All other "
            "requests since that copy are lost: docs/backup.md says what that means, and what to do.",
            change=newest_change,
        )
        return drift, True
    return None, is_enough


def _newest_words(lost: Sequence[RecordedCommit], recorded: Sequence[RecordedCommit]) -> dict[StoredPlace, CommitId]:
    """Returns the secrets whose newest value is lost, because no later commit wrote or deleted them."""
    newest: dict[StoredPlace, RecordedCommit] = {}
    for each in recorded:
        if each.secret is not None:
            newest.setdefault(each.secret, each)
    told = {place: each.commit for place, each in newest.items() if each in lost and not each.deletes}
    return {place: told[place] for place in sorted(told, key=str)}


def _what_is_lost(commits: Sequence[CommitId], lost: Sequence[RecordedCommit], written: Iterable[StoredPlace]) -> str:
    pushed = list(dict.fromkeys(each.commit[:12] for each in lost if each.pushed))
    deleted = sorted({str(each.secret) for each in lost if each.deletes and each.secret})
    parts = [
        f"{name}: {_first(those)}"
        for name, those in (
            ("secret values", [str(place) for place in written]),
            ("deletions of secret values", deleted),
            ("pushes to by-hand/", pushed),
        )
        if those
    ]
    known = f" Lost, according to the timeline: {'; '.join(parts)}." if parts else ""
    number = "commit" if len(commits) == 1 else f"{len(commits)} commits:"
    return (
        f"The repository has lost {number} {_first([commit[:12] for commit in commits])}: an earlier copy of it was "
        f"put back. The generated files are rendered again.{known} Restore a newer copy, or enter and push the "
        "lost content again."
    )


def _first(names: Sequence[str]) -> str:
    left = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {left} more" if left > 0 else "")
