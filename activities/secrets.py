"""Commits the staged secrets that no gateway has committed: large ones, and those of a gateway that could not."""

from temporalio import activity

from edgewright.application.secret_commits import SecretCommits
from edgewright.messages.steps import CommitSecrets, CommitSecretsResult
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.git_server import GitServer
from edgewright.ports.secret_staging import SecretStaging


class SecretActivities:
    """Ciphertext in, commits out. No plaintext ever comes here."""

    def __init__(self, directory: ClusterDirectory, staging: SecretStaging, git: GitServer) -> None:
        self._commits = SecretCommits(directory, staging, git)

    @activity.defn(name="commit_secrets")
    async def commit_secrets(self, message: CommitSecrets) -> CommitSecretsResult:
        """Commits what is staged for a cluster, the oldest first, and says whether there is more."""
        made = await self._commits.commit(message.cluster)
        newest = made.newest
        if not made.requests and activity.info().attempt > 1:
            newest = await self._commits.unreported(message.cluster)
        return CommitSecretsResult(commit=newest, requests=made.requests, more=made.more)
