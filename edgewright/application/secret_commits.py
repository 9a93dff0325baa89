"""Commits staged ciphertext: many requests in one commit, each request whole or not at all.

Gateways commit what they have staged, and the worker what no gateway has committed. Neither waits for the other:
the head of the repository decides (docs/adr/0020-the-gateway-commits-secrets.md).
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from uuid import UUID

from edgewright.application.committed_requests import (
    LONGEST_LOOK,
    MOST_LOOKED_AT,
    SHORT_LOOK,
    already_committed,
    by_request,
    last_of_the_centre,
    names_a_request,
    removed_keys_trailers,
    request_trailer,
    requests_named,
)
from edgewright.application.git_storage import CAS_ATTEMPTS, demand_storage, lost_every_race
from edgewright.application.staged_files import AppliedRequests, Files, apply_with_drivers
from edgewright.domain.cluster import Desired
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.domain.rendering import SECRETS_FOLDER
from edgewright.errors import EdgewrightError, NotFound, Refused, Stalled, Waiting
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.git_server import CommitId, CommitMessage, CommitSummary, GitServer, HeadMoved, WriterFence
from edgewright.ports.secret_staging import REFUSED_BY_A_WISH, SecretStaging, StagedChange, StagedState
from edgewright.sealing import SealedValue, replace_values

BATCH = 200

StagedRequests = Mapping[UUID, Sequence[StagedChange]]


@dataclass(frozen=True)
class CommittedSecrets:
    """What one attempt has done.

    Args:
        commits: of the requests that are committed now.
        newest: of these commits.
        requests: how many were dealt with, in whatever way.
        more: whether others wait.
    """

    commits: Mapping[UUID, CommitId] = field(default_factory=dict)
    newest: CommitId | None = None
    requests: int = 0
    more: bool = False


class SecretCommits:
    """Ciphertext in, commits out. No plaintext ever comes here."""

    def __init__(self, directory: ClusterDirectory, staging: SecretStaging, git: GitServer) -> None:
        self._directory = directory
        self._staging = staging
        self._git = git

    async def commit(
        self, cluster: UUID, *, staged_on: Mapping[UUID, CommitId] | None = None, most: int | None = None
    ) -> CommittedSecrets:
        """Commits what is staged for a cluster, the oldest first.

        Args:
            staged_on: request -> the head before it was staged, where that is known: no older commit holds it.
            most: changes in one commit; nothing is committed if one request has more, or if very many commits
                would have to be searched.

        Raises:
            NotFound: code ``cluster_unknown``.
            Waiting: ``HeadMoved``: others were faster every time; ``paused``; ``not_ready``: there is no repository;
                ``large_commit``, and ``long_log``, if there is a ``most``; the storage is away.
        """
        for _ in range(CAS_ATTEMPTS):
            try:
                return await self._attempt(cluster, staged_on or {}, most)
            except HeadMoved:
                continue
        raise lost_every_race()

    async def unreported(self, cluster: UUID) -> CommitId | None:
        """The newest commit of secrets; for who may have died before it told of one.

        What it has committed is recorded as that: a removal or deletion, which ends what waits, may have come first.
        """

        is_last = last_of_the_centre()

        def is_found(commit: CommitSummary) -> bool:
            return names_a_request(commit) or is_last(commit)

        def look() -> CommitSummary | None:
            log = self._git.log(cluster, limit=MOST_LOOKED_AT, only=names_a_request, until=is_found)
            return next(iter(log), None)

        try:
            newest = await asyncio.to_thread(look)
        except NotFound:
            return None
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

    async def outcome(self, cluster: UUID, request: UUID) -> Sequence[StagedChange]:
        """The changes of a request, where refused means: no commit holds them, and none ever will.

        Another committer may have read them before a wish refused them, and be about to commit them; or it has, and
        died before it recorded that.

        Raises:
            Waiting: the storage is away, or busy: nobody can say.
        """
        changes = await self._staging.request(request)
        row = await self._directory.get(cluster)
        if row is None or not any(change.state is StagedState.REFUSED for change in changes):
            return changes
        try:
            fence = f"{row.generation}/{row.change}"
            if any(change.refusal_code not in REFUSED_BY_A_WISH for change in changes):
                fence += f" {request}"  # the row did not change with the refusal: its fence may be older than that
            await asyncio.to_thread(partial(self._git.raise_fence, cluster, fence, once=True))
            found = await asyncio.to_thread(self._search, cluster, {request: changes})
        except NotFound:
            await asyncio.to_thread(demand_storage, self._git)
            return changes  # a deletion has put the repository away
        for commit, done in found.items():
            await self._staging.committed(done, commit)
        return await self._staging.request(request) if found else changes

    async def _attempt(self, cluster: UUID, staged_on: Mapping[UUID, CommitId], most: int | None) -> CommittedSecrets:
        """Fence and head are read before the row and what is staged: whatever anybody else does after that, a removal
        of the workloads or a newer value of the same key, moves one of them; then the next attempt begins anew.
        """
        number, head = await asyncio.to_thread(self._fence_and_head, cluster)
        row = await self._directory.get(cluster)
        if row is None:
            raise NotFound(f"There is no cluster {cluster}.", code="cluster_unknown")
        pending = await self._staging.pending(cluster, limit=most or BATCH)
        if most is not None and len(pending.changes) > most:
            raise Waiting("One request has more changes than are committed here.", code="large_commit")
        if not pending.changes:
            return CommittedSecrets()
        if pending.changes[0].generation != row.generation:
            raise HeadMoved("The cluster has moved to new hardware since its row was read.")
        requests, resealed = _split_by_origin(by_request(pending.changes))
        more = pending.more or len(requests) < len({change.request for change in pending.changes})
        commits = (
            {}
            if head is None
            else await self._already_committed(cluster, head, requests, staged_on, short=most is not None)
        )
        left = {request: changes for request, changes in requests.items() if request not in commits}
        done = CommittedSecrets(commits, next(reversed(commits.values()), None), len(requests), more)
        fence = WriterFence(f"{row.generation}/{row.change}", number)
        if row.desired is not Desired.PRESENT and left:
            await self._hold_row(row)
            if head is not None:
                await asyncio.to_thread(_overtake, self._git, row, head, fence)
            for request in left:
                await self._staging.refuse(request, "not_present", "The cluster was removed or deleted meanwhile.")
        if row.desired is not Desired.PRESENT or not left:
            return done
        if head is None:
            raise Waiting("The repository is missing or not populated yet.", code="not_ready", retry_after=1.0)
        if row.paused:
            raise Waiting("Commits are paused.", code="paused")
        make = self._commit_resealed if resealed else self._commit_written
        made = await make(row, head, left, fence)
        return CommittedSecrets({**commits, **made}, next(reversed(made.values()), done.newest), len(requests), more)

    async def _hold_row(self, row: ClusterRow) -> None:
        """``HeadMoved`` if something else is wanted by now: what waits came after that, and is not to be refused."""
        present = await self._directory.get(row.uuid)
        if present is None or present.change != row.change:
            raise HeadMoved("Something else is wanted of the cluster since its row was read.")

    def _fence_and_head(self, repository: UUID) -> tuple[int, CommitId | None]:
        """0 and None also for a repository that does not exist. Blocks."""
        try:
            return self._git.fence_number(repository), self._git.head(repository)
        except NotFound:
            return 0, None

    async def _already_committed(
        self,
        repository: UUID,
        head: CommitId,
        requests: StagedRequests,
        staged_on: Mapping[UUID, CommitId],
        *,
        short: bool,
    ) -> dict[UUID, CommitId]:
        """Requests whose commit exists although no row says so, oldest first: who made it died between the two, or is
        about to say so."""
        heads = {staged_on[request] for request in requests if request in staged_on}
        all_known = staged_on.keys() >= requests.keys()
        if all_known and heads == {head}:
            return {}
        back_to = heads if all_known else ()
        found = await asyncio.to_thread(self._search, repository, requests, back_to, short=short)
        commits: dict[UUID, CommitId] = {}
        for commit in reversed(found):
            await self._staging.committed(found[commit], commit)
            commits |= dict.fromkeys(found[commit], commit)
        return commits

    def _search(
        self,
        repository: UUID,
        requests: StagedRequests,
        back_to: Collection[CommitId] = (),
        *,
        short: bool = False,
    ) -> dict[CommitId, list[UUID]]:
        """Commits that hold requests of these, newest first. Blocks.

        Args:
            short: raises ``Waiting``, code ``long_log``, rather than to look at many commits that were pushed.
        """
        most, looked_at = SHORT_LOOK if short else MOST_LOOKED_AT, count(1)

        def names_one(commit: CommitSummary) -> bool:
            return not requests.keys().isdisjoint(requests_named(commit))

        staged_at = min((datetime.now(UTC), *(changes[0].sealed_at for changes in requests.values())))
        is_old = last_of_the_centre(staged_at - LONGEST_LOOK)

        def is_last(commit: CommitSummary) -> bool:
            is_enough = is_old(commit)
            if short and next(looked_at) == most and not is_enough:
                raise Waiting("Too much was pushed since to look through it here.", code="long_log")
            return is_enough

        log = self._git.log(repository, limit=most, back_to=back_to, only=names_one, until=is_last)
        return already_committed(log, requests)

    async def _commit_written(
        self, row: ClusterRow, head: CommitId, requests: StagedRequests, fence: WriterFence
    ) -> dict[UUID, CommitId]:
        """One commit on this head, or none if no request can be committed. ``HeadMoved``: somebody was faster.

        What cannot be committed is refused first. If it still waited once something newer is committed, it would
        count as replaced by that, or, after a death between the two, could be committed over it.
        """
        applied = await asyncio.to_thread(_apply, self._git, row, head, requests)
        if applied.refused:
            fence = await asyncio.to_thread(_overtake, self._git, row, head, fence)
        for request, refusal in applied.refused.items():
            await self._staging.refuse(request, refusal.code, _sentence(refusal))
        if not applied.taken:
            return {}
        message = _message(row, requests, applied.taken)
        make = partial(self._git.commit, row.uuid, applied.files, message, expected_head=head, fence=fence)
        commit = await asyncio.to_thread(make)
        if commit == head:
            # All is as they want it, and no commit names them: a refusal that came meanwhile may have been told.
            await self._staging.committed(applied.taken, commit, unless_refused=True)
            return {}
        await self._staging.committed(applied.taken, commit)
        return dict.fromkeys(applied.taken, commit)

    async def _commit_resealed(
        self, row: ClusterRow, head: CommitId, requests: StagedRequests, fence: WriterFence
    ) -> dict[UUID, CommitId]:
        """The same for re-sealed values; what has something else in its place by now is left out, and said so."""
        made: dict[UUID, CommitId] = {}
        for request, changes in requests.items():
            files, outdated = await asyncio.to_thread(_put_in_place, self._git, row.uuid, head, changes)
            await self._staging.give_way(outdated)
            left = [change for change in changes if change not in outdated]
            if not left:
                continue
            message = _message(row, {request: left}, [request])
            commit = partial(self._git.commit, row.uuid, files, message, expected_head=head, fence=fence)
            head = made[request] = await asyncio.to_thread(commit)
            await self._staging.committed([request], head)
        return made


def _split_by_origin(requests: StagedRequests) -> tuple[StagedRequests, bool]:
    """The requests that are committed now, and whether these are of re-sealed values.

    What people have written goes first, and never into one commit with what an edge has sent: that is to be reverted
    by itself.
    """
    resealed = {request: changes for request, changes in requests.items() if changes[0].replaces is not None}
    written = {request: changes for request, changes in requests.items() if request not in resealed}
    return (written, False) if written else (resealed, True)


def _apply(git: GitServer, row: ClusterRow, head: CommitId, requests: StagedRequests) -> AppliedRequests:
    """What becomes of each request on a head. Blocks."""
    return apply_with_drivers(
        partial(git.read, row.uuid, at=head),
        partial(git.list, row.uuid, SECRETS_FOLDER.rstrip("/"), at=head),
        list(requests.items()),
    )


def _overtake(git: GitServer, row: ClusterRow, head: CommitId, fence: WriterFence) -> WriterFence:
    """Refuses every attempt that was begun before, and fails if another one was faster. Blocks.

    Returns:
        What this attempt goes on with.
    """
    git.commit(row.uuid, {}, CommitMessage("", actor=""), expected_head=head, fence=fence)
    return replace(fence, number=fence.number + 1)


def _put_in_place(
    git: GitServer, repository: UUID, head: CommitId, changes: Sequence[StagedChange]
) -> tuple[Files, list[StagedChange]]:
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
            *removed_keys_trailers(changes),
            *(request_trailer(request, requests[request]) for request in taken),
        ),
    )
