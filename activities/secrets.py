"""Commits staged ciphertext: many requests in one commit, each request whole or not at all."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

from temporalio import activity

from activities.secret_namespaces import apply_with_drivers
from activities.staged_files import Files
from edgewright.application.committed_requests import REQUEST_TRAILER, already_committed, by_request, requests_named
from edgewright.domain.cluster import Desired
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.domain.rendering import SECRETS_FOLDER
from edgewright.errors import EdgewrightError, NotFound, Refused, Stalled, Waiting
from edgewright.messages.steps import CommitSecrets, CommitSecretsResult
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.git_server import CommitId, CommitMessage, CommitSummary, GitServer, HeadMoved, WriterFence
from edgewright.ports.secret_staging import SecretStaging, StagedChange, StagedState
from edgewright.sealing import SealedValue, replace_values

BATCH = 200
CAS_ATTEMPTS = 20
FRESH = timedelta(seconds=3)
"""A request staged less than this ago, at an activity's first attempt, cannot have been committed yet."""
LOOK_BACK = 500
"""Commits searched for a request that an earlier attempt may have committed without recording it."""

StagedRequests = Mapping[UUID, Sequence[StagedChange]]


class SecretActivities:
    """Ciphertext in, commits out. No plaintext ever comes here."""

    def __init__(self, directory: ClusterDirectory, staging: SecretStaging, git: GitServer) -> None:
        self._directory = directory
        self._staging = staging
        self._git = git

    @activity.defn(name="commit_secrets")
    async def commit_secrets(self, message: CommitSecrets) -> CommitSecretsResult:
        """Commits everything that is staged for a cluster."""
        for _ in range(CAS_ATTEMPTS):
            try:
                return await self._commit_staged(message.cluster)
            except HeadMoved:
                continue
        raise HeadMoved("The repository is too busy; the commit lost every race.", retry_after=1.0)

    async def _commit_staged(self, cluster: UUID) -> CommitSecretsResult:
        """One attempt.

        Fence and head are read before the row and what is staged: whatever another worker does after that, a removal
        of the workloads or a newer value of the same key, moves one of them; then this attempt begins anew.
        """
        number = await self._fence_number(cluster)
        head = await self._head(cluster)
        row = await self._directory.get(cluster)
        if row is None:
            raise NotFound(f"There is no cluster {cluster}.", code="cluster_unknown")
        pending = await self._staging.pending(cluster, limit=BATCH)
        if not pending:
            return CommitSecretsResult(commit=await self._unreported(cluster) if head else None)
        requests, resealed = _split_by_origin(by_request(pending))
        more = len(pending) >= BATCH or len(requests) < len({change.request for change in pending})
        found = await self._already_committed(cluster, requests) if head and _may_be_a_repetition(pending) else {}
        for commit, done in found.items():
            await self._staging.committed(done, commit)
        left = {
            request: changes for request, changes in requests.items() if request not in set().union(*found.values())
        }
        if row.desired is not Desired.PRESENT:
            for request in left:
                await self._staging.refuse(request, "not_present", "The cluster was removed or deleted meanwhile.")
        if row.desired is not Desired.PRESENT or not left:
            return CommitSecretsResult(commit=next(iter(found), None), requests=len(requests), more=more)
        if head is None:
            raise Waiting("The repository is missing or not populated yet.", code="not_ready", retry_after=1.0)
        if row.paused:
            raise Waiting("Commits are paused.", code="paused")
        make = self._commit_resealed if resealed else self._commit
        newest = await make(row, head, left, WriterFence(f"{row.generation}/{row.change}", number))
        return CommitSecretsResult(commit=newest or next(iter(found), None), requests=len(requests), more=more)

    async def _fence_number(self, repository: UUID) -> int:
        """0 also for a repository that does not exist."""
        try:
            return await asyncio.to_thread(self._git.fence_number, repository)
        except NotFound:
            return 0

    async def _head(self, repository: UUID) -> CommitId | None:
        """None also for a repository that does not exist."""
        try:
            return await asyncio.to_thread(self._git.head, repository)
        except NotFound:
            return None

    async def _unreported(self, repository: UUID) -> CommitId | None:
        """The newest commit of secrets, if an attempt before this one may have died before it told of it.

        What it has committed is recorded as that: a removal or deletion, which ends what waits, may have come first.
        """
        if activity.info().attempt == 1:
            return None

        def look() -> CommitSummary | None:
            log = self._git.log(repository, limit=LOOK_BACK)
            return next((commit for commit in log if f"{REQUEST_TRAILER}: " in commit.message), None)

        newest = await asyncio.to_thread(look)
        if newest is None:
            return None
        told = {request: await self._staging.request(request) for request in requests_named(newest)}
        refused = {
            request: changes
            for request, changes in told.items()
            if any(change.state is StagedState.REFUSED for change in changes)
        }
        for commit, done in already_committed([newest], refused).items():
            await self._staging.committed(done, commit)
        return newest.commit

    async def _already_committed(self, repository: UUID, requests: StagedRequests) -> Mapping[CommitId, list[UUID]]:
        """Requests whose commit exists although no row says so: an attempt died between the two."""

        def look() -> Mapping[CommitId, list[UUID]]:
            return already_committed(self._git.log(repository, limit=LOOK_BACK), requests)

        return await asyncio.to_thread(look)

    async def _commit_on(
        self, cluster: UUID, head: CommitId, files: Files, message: CommitMessage, fence: WriterFence
    ) -> CommitId:
        return await asyncio.to_thread(self._git.commit, cluster, files, message, expected_head=head, fence=fence)

    async def _commit(
        self, row: ClusterRow, head: CommitId, requests: StagedRequests, fence: WriterFence
    ) -> CommitId | None:
        """One commit on this head; None if no request can be committed. ``HeadMoved``: somebody was faster."""
        applied = await asyncio.to_thread(
            apply_with_drivers,
            partial(self._git.read, row.uuid, at=head),
            partial(self._git.list, row.uuid, SECRETS_FOLDER.rstrip("/"), at=head),
            list(requests.items()),
        )
        for request, refusal in applied.refused.items():
            await self._staging.refuse(request, refusal.code, _sentence(refusal))
        if not applied.taken:
            return None
        message = _message(row, requests, applied.taken)
        commit = await self._commit_on(row.uuid, head, applied.files, message, fence)
        await self._staging.committed(applied.taken, commit)
        return commit

    async def _commit_resealed(
        self, row: ClusterRow, head: CommitId, requests: StagedRequests, fence: WriterFence
    ) -> CommitId | None:
        """The same for re-sealed values; what has something else in its place by now is left out, and said so."""
        newest: CommitId | None = None
        for request, changes in requests.items():
            files, outdated = await asyncio.to_thread(_put_in_place, self._git, row.uuid, newest or head, changes)
            await self._staging.give_way(outdated)
            left = [change for change in changes if change not in outdated]
            if not left:
                continue
            message = _message(row, {request: left}, [request])
            newest = await self._commit_on(row.uuid, newest or head, files, message, fence)
            await self._staging.committed([request], newest)
        return newest


def _split_by_origin(requests: StagedRequests) -> tuple[StagedRequests, bool]:
    """The requests that are committed now, and whether these are of re-sealed values.

    What people have written goes first, and never into one commit with what an edge has sent: that is to be reverted
    by itself.
    """
    resealed = {request: changes for request, changes in requests.items() if changes[0].replaces is not None}
    written = {request: changes for request, changes in requests.items() if request not in resealed}
    return (written, False) if written else (resealed, True)


def _put_in_place(
    git: GitServer, repository: UUID, head: CommitId, changes: Sequence[StagedChange]
) -> tuple[dict[str, bytes | None], list[StagedChange]]:
    """The files that result, and the changes that find something else in the place of what they replace. Blocks."""
    files: dict[str, bytes | None] = {}
    outdated: list[StagedChange] = []
    for secret, of_secret in _by_secret(changes).items():
        path = secret.path
        document = git.read(repository, path, at=head)
        replacements = {
            key: (change.replaces or "", SealedValue(change.ciphertext, change.fingerprint, change.sealed_at))
            for key, change in of_secret
            if change.ciphertext is not None
        }
        try:
            changed, gone = replace_values(document, secret, replacements)
        except (Refused, Stalled):
            changed, gone = document, replacements.keys()  # the file was changed into something that holds no value
        outdated += [change for key, change in of_secret if key in gone]
        if changed != document:
            files[path] = changed
    return files, outdated


def _by_secret(changes: Sequence[StagedChange]) -> dict[SecretReference, list[tuple[str, StagedChange]]]:
    """Key and change; a re-sealed value always has a key."""
    grouped: dict[SecretReference, list[tuple[str, StagedChange]]] = {}
    for change in changes:
        if isinstance(change.place, SecretKey):
            grouped.setdefault(change.place.secret, []).append((change.place.key, change))
    return grouped


def _may_be_a_repetition(changes: Sequence[StagedChange]) -> bool:
    """Whether an attempt before this one may have died between the commit and its record."""
    oldest = min(change.sealed_at for change in changes)
    return activity.info().attempt > 1 or datetime.now(UTC) - oldest > FRESH


def _sentence(error: EdgewrightError) -> str:
    return f"{error.detail} {error.hint}" if error.hint else error.detail


def _verb(change: StagedChange) -> str:
    if isinstance(change.place, SecretReference):
        return "Label and annotate"
    if change.deletes:
        return "Remove"
    return "Seal" if change.replaces is None else "Re-seal"


def _message(row: ClusterRow, requests: StagedRequests, taken: Sequence[UUID]) -> CommitMessage:
    changes = [change for request in taken for change in requests[request]]
    actors = sorted({change.actor for change in changes})
    lines = [f"{_verb(c)} {c.place} (by {c.actor})" for c in changes]
    done = "Re-seal" if all(change.replaces for change in changes) else "Change"
    subject = lines[0].rsplit(" (by ", 1)[0] if len(lines) == 1 else f"{done} {len(lines)} secret values"
    return CommitMessage(
        subject=subject,
        actor=actors[0] if len(actors) == 1 else "several",
        body="\n".join(lines) if len(lines) > 1 else "",
        trailers=(
            ("Edgewright-Cluster", str(row.uuid)),
            ("Edgewright-Fence", f"{row.generation}/{row.change}"),
            *((REQUEST_TRAILER, str(request)) for request in taken),
        ),
    )
