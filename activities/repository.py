"""The steps that touch the driving repository, and the commits of secrets that no gateway has made."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from uuid import UUID

from temporalio import activity

from edgewright.application.git_storage import CAS_ATTEMPTS, demand_storage, lost_every_race
from edgewright.application.rendering import RenderInputs
from edgewright.application.repository_ahead import REMOVAL_TRAILER, TAKEN_TRAILER
from edgewright.application.secret_commits import SecretCommits
from edgewright.domain.cluster import Fence
from edgewright.domain.kubernetes_names import SecretPlace
from edgewright.domain.rendering import (
    READ_BY_PURGE,
    SECRETS_FOLDER,
    purge_files,
    render_changes,
    workload_removal,
)
from edgewright.domain.rendering.secret_drivers import sealed_files
from edgewright.errors import NotFound, Stalled, Superseded
from edgewright.messages.steps import CommitSecrets, CommitSecretsResult, RaiseFence, StepInput, StepResult
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.cluster_steps import ClusterSteps
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.git_server import CommitId, CommitMessage, GitServer, HeadMoved, WriterFence
from edgewright.ports.secret_staging import SecretStaging
from edgewright.sealing import read_values, remove_keys

Changes = Mapping[str, bytes | None]
ChangesFor = Callable[[CommitId | None, list[str]], Awaitable[Changes]]
"""What is to be changed on a head that has these paths; after a lost race it reads again what decides that."""


class RepositoryActivities:
    """Creates, populates and retires a driving repository; every commit carries its fence as a trailer."""

    def __init__(
        self, directory: ClusterDirectory, steps: ClusterSteps, git: GitServer, render_inputs: RenderInputs
    ) -> None:
        self._directory = directory
        self._steps = steps
        self._git = git
        self._render_inputs = render_inputs

    @activity.defn(name="create_repository")
    async def create_repository(self, step: StepInput) -> StepResult:
        """Creates an empty repository, and the Git entry that names it."""
        archivals = await asyncio.to_thread(self._git.archivals, step.fence.cluster)
        row = await self._row(step.fence.cluster)
        await self._steps.check_fence(step.fence)
        await asyncio.to_thread(demand_storage, self._git)
        await asyncio.to_thread(self._git.create_repository, row.uuid, archivals=archivals)
        await self._steps.write_git_entry(step.fence, f"cluster/{row.spec.name}")
        return StepResult()

    @activity.defn(name="populate_repository")
    async def populate_repository(self, step: StepInput) -> StepResult:
        """Commits all generated files at once; does nothing if they are there."""
        row = await self._row(step.fence.cluster)
        collected = await self._render_inputs.collect(row)

        async def rendering(_: CommitId | None, paths: list[str]) -> Changes:
            nonlocal collected
            collected = await self._render_inputs.collect(row)
            return render_changes(await self._render_inputs.render(collected), paths)

        if row.projection is not None:
            await self._steps.begin_rendering(step.fence)
        commit = await self._commit(
            step.fence,
            rendering,
            subject=f"Commission {row.spec.name}" if row.projection is None else f"Render {row.spec.name}",
            actor=row.created_by if row.projection is None else step.actor,
        )
        digest = collected.digest
        await self._steps.record_rendering(step.fence, digest, collected.sources, commit=commit)
        return StepResult(commit=commit, rendered_digest=digest, note=f"Generated files: commit {commit[:12]}.")

    @activity.defn(name="withdraw_secrets")
    async def withdraw_secrets(self, step: StepInput) -> StepResult:
        """Removes secrets that only the old hardware could open, and lists them to be entered again.

        Values sealed with the present certificate stay, because they were entered for the new hardware.
        """
        for _ in range(CAS_ATTEMPTS):
            result = await self._withdraw(step)
            if result is not None:
                return result
        raise lost_every_race()

    async def _withdraw(self, step: StepInput) -> StepResult | None:
        """Returns None if a commit of secrets came in between, which may have deleted what would be listed."""
        row = await self._row(step.fence.cluster)
        head = await self._head_if_there(row.uuid)
        if head is None:
            return StepResult()
        present = row.certificate.fingerprint if row.certificate else None

        def without_stale(at: CommitId | None, paths: list[str]) -> Changes:
            documents = {path: self._git.read(row.uuid, path, at=at) for path, _ in sealed_files(paths)} if at else {}
            kept = {path: _only_sealed_for(present, document, path) for path, document in documents.items()}
            return {path: document for path, document in kept.items() if document != documents[path]}

        paths = await asyncio.to_thread(self._git.list, row.uuid, SECRETS_FOLDER.rstrip("/"), at=head)
        stale = await asyncio.to_thread(without_stale, head, list(paths))
        taken = await asyncio.to_thread(self._keys_taken, row.uuid, head, stale)
        listed = not stale or await self._steps.record_reentry(
            step.fence, taken=taken, secrets_commit=row.secrets_commit
        )
        if not listed:
            return None
        commit = await self._commit(
            step.fence,
            lambda at, paths: asyncio.to_thread(without_stale, at, paths),
            subject=f"Take away {len(taken)} secret values sealed for the old hardware",
            actor=step.actor,
            trailers=((TAKEN_TRAILER, str(len(taken))),),
        )
        # Some of it may have been entered for the new hardware since the head was read.
        await self._steps.record_reentry(step.fence, there=await asyncio.to_thread(self._keys, row.uuid, commit))
        return StepResult(commit=commit, note=f"{len(taken)} secret values must be entered again." if stale else "")

    def _keys(self, repository: UUID, at: CommitId) -> set[SecretPlace]:
        """Returns all secrets: each value, and each Secret as a whole."""
        found: set[SecretPlace] = set()
        for path, secret in sealed_files(self._git.list(repository, SECRETS_FOLDER.rstrip("/"), at=at)):
            try:
                values = read_values(self._git.read(repository, path, at=at) or b"", where=path)
            except Stalled:
                continue
            found |= {secret, *map(secret.at, values)}
        return found

    def _keys_taken(self, repository: UUID, head: CommitId, stale: Changes) -> list[SecretPlace]:
        """Returns each value that a change removes; for an unreadable file, the whole Secret."""
        taken: list[SecretPlace] = []
        for path, secret in sealed_files(stale):
            left = stale[path]
            try:
                before = read_values(self._git.read(repository, path, at=head) or b"", where=path)
                after = read_values(left, where=path) if left else {}
            except Stalled:
                taken.append(secret)
                continue
            taken += [secret.at(key) for key in before if key not in after]
        return taken

    @activity.defn(name="remove_workloads")
    async def remove_workloads(self, step: StepInput) -> StepResult:
        """Commits the removal of workloads, but keeps what drives the edge; also grants the rights to purge if the
        deletion includes a purge."""
        row = await self._row(step.fence.cluster)
        if await self._head_if_there(row.uuid) is None:
            return StepResult(note="There is no repository, so there is nothing to remove.")

        rights: Changes = {}

        async def removal(head: CommitId | None, paths: list[str]) -> Changes:
            nonlocal rights
            rights = await asyncio.to_thread(self._rights_to_purge, row, head) if row.purge.asked else {}
            return {**workload_removal(paths), **rights}

        commit = await self._commit(
            step.fence,
            removal,
            subject=f"Remove the workloads of {row.spec.name}",
            actor=step.actor,
            trailers=((REMOVAL_TRAILER, "workloads"),),
        )
        lacking = (
            " It brings no rights to purge: this cluster has no sealed-secrets of ours." if row.purge.asked else ""
        )
        return StepResult(commit=commit, note=f"The removal commit is {commit[:12]}.{'' if rights else lacking}")

    def _rights_to_purge(self, row: ClusterRow, at: CommitId | None) -> Changes:
        read = {path: self._git.read(row.uuid, path, at=at) if at else None for path in READ_BY_PURGE}
        files = {path: content for path, content in read.items() if content is not None}
        return purge_files(files, row.uuid, row.spec.namespace)

    @activity.defn(name="archive_repository")
    async def archive_repository(self, step: StepInput) -> StepResult:
        """Takes the repository out of service; its bytes are kept."""
        await self._steps.check_fence(step.fence)
        await asyncio.to_thread(demand_storage, self._git)
        await asyncio.to_thread(self._git.archive, step.fence.cluster)
        return StepResult()

    @activity.defn(name="raise_fence")
    async def raise_fence(self, message: RaiseFence) -> None:
        """Refuses every earlier commit of steps or secrets; there may be no repository yet."""
        row = await self._directory.get(message.cluster)
        if row is None or row.closed:
            return
        with suppress(NotFound):
            await asyncio.to_thread(self._git.raise_fence, row.uuid, f"{row.generation}/{row.change}")

    async def _commit(
        self,
        fence: Fence,
        changes_for: ChangesFor,
        *,
        subject: str,
        actor: str,
        trailers: Sequence[tuple[str, str]] = (),
    ) -> CommitId:
        """Commits on the present head; each attempt checks the fence again, and leaves it in the repository."""
        message = CommitMessage(
            subject=subject,
            actor=actor,
            trailers=(
                ("Edgewright-Cluster", str(fence.cluster)),
                ("Edgewright-Fence", fence.trailer()),
                *trailers,
            ),
        )
        repository = fence.cluster
        for _ in range(CAS_ATTEMPTS):
            number = await asyncio.to_thread(self._git.fence_number, repository)
            head = await self._head(repository)
            paths = await asyncio.to_thread(self._git.list, repository, "", at=head) if head else []
            changes = await changes_for(head, list(paths))
            await self._steps.check_fence(fence)
            stored = WriterFence(fence.trailer(), number)
            try:
                return await asyncio.to_thread(
                    self._git.commit, repository, changes, message, expected_head=head, fence=stored
                )
            except HeadMoved:
                continue
        raise lost_every_race()

    async def _head(self, repository: UUID) -> CommitId | None:
        return await asyncio.to_thread(self._git.head, repository)

    async def _head_if_there(self, repository: UUID) -> CommitId | None:
        """Returns None also for a repository that does not exist, which has nothing to remove."""
        if not await asyncio.to_thread(self._git.exists, repository):
            await asyncio.to_thread(demand_storage, self._git)
            return None
        return await self._head(repository)

    async def _row(self, cluster: UUID) -> ClusterRow:
        row = await self._directory.get(cluster)
        if row is None:
            raise NotFound(f"There is no cluster {cluster}.", code="cluster_unknown")
        if row.closed:
            raise Superseded(f"The deletion of {cluster} has finished.")
        return row


class SecretActivities:
    """Commits the staged secrets that no gateway has committed: large ones, and those of a gateway that could not.

    Ciphertext in, commits out. No plaintext ever comes here.
    """

    def __init__(self, directory: ClusterDirectory, staging: SecretStaging, git: GitServer) -> None:
        self._commits = SecretCommits(directory, staging, git)

    @activity.defn(name="commit_secrets")
    async def commit_secrets(self, message: CommitSecrets) -> CommitSecretsResult:
        """Commits the staged secrets of a cluster, oldest first, and returns whether there are more."""
        made = await self._commits.commit(message.cluster)
        newest = made.newest
        if not made.requests and activity.info().attempt > 1:
            newest = await self._commits.unreported(message.cluster)
        return CommitSecretsResult(commit=newest, requests=made.requests, more=made.more)


def _only_sealed_for(fingerprint: str | None, document: bytes | None, path: str) -> bytes | None:
    """Removes keys that another certificate sealed from a file; returns None if nothing is left of it."""
    if document is None or fingerprint is None:
        return None
    try:
        values = read_values(document, where=path)
    except Stalled:
        return None
    stale = [key for key, value in values.items() if value.fingerprint != fingerprint]
    return remove_keys(document, stale, where=path) if stale else document
