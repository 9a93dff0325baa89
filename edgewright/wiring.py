"""Opens what the settings name: gateway, worker and command line get their ports here and nowhere else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, Self

from edgewright.adapters.database.access.accounts import SqlAccounts
from edgewright.adapters.database.access.edge_access import SqlEdgeAccess
from edgewright.adapters.database.access.operators import SqlIdempotencyKeys, SqlOperatorTokens
from edgewright.adapters.database.clusters.cluster_directory import SqlClusterDirectory
from edgewright.adapters.database.clusters.cluster_steps import SqlClusterSteps
from edgewright.adapters.database.clusters.cluster_wishes import SqlClusterWishes
from edgewright.adapters.database.clusters.upgrades import SqlUpgrades
from edgewright.adapters.database.config_store.config_store import SqlConfigStore
from edgewright.adapters.database.edges.edge_reports import SqlEdgeReports
from edgewright.adapters.database.engine.engine import Database, open_database
from edgewright.adapters.database.events.events import SqlAuditLog
from edgewright.adapters.database.notifications.notifications import SqlNotifications
from edgewright.adapters.database.notifications.webhooks import SqlWebhooks
from edgewright.adapters.database.secrets.resealing import SqlResealings
from edgewright.adapters.database.secrets.secret_staging import SqlEndedRequests, SqlSecretStaging
from edgewright.adapters.database.upkeep.census import SqlCensus
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.timed import TimedGit
from edgewright.adapters.webhook.key_file import FILE_NAME, WebhookKeyFile
from edgewright.ports.stored import StoredPorts
from edgewright.settings import Settings


class GitMetrics(Protocol):
    """Where a process counts its operations on repositories; called from many threads."""

    def git(self, operation: str, seconds: float) -> None:
        """An operation has ended, perhaps with an error."""

    def git_memory_limit(self, operation: str) -> None:
        """Git got no more memory for an operation."""


@dataclass(frozen=True, kw_only=True)
class OpenPorts(StoredPorts):
    """The ports of one process, and what they were made of; only who wires a process uses the latter.

    Args:
        repositories: what ``git`` works on, without metrics.
    """

    database: Database
    repositories: BareGitServer

    def measured(self, metrics: GitMetrics) -> Self:
        """The same ports, with every operation of ``git`` counted."""
        return replace(self, git=TimedGit(self.repositories, metrics.git, metrics.git_memory_limit))


def ports_on(database: Database, repositories: BareGitServer, webhook_key: Path) -> OpenPorts:
    """The ports on a database, a folder of repositories and a key file; none of them is touched yet."""
    return OpenPorts(
        wishes=SqlClusterWishes(database),
        directory=SqlClusterDirectory(database),
        steps=SqlClusterSteps(database),
        config=SqlConfigStore(database),
        edge_access=SqlEdgeAccess(database),
        edge_reports=SqlEdgeReports(database),
        accounts=SqlAccounts(database),
        operators=SqlOperatorTokens(database),
        idempotency=SqlIdempotencyKeys(database),
        staging=SqlSecretStaging(database),
        ended_requests=SqlEndedRequests(database),
        resealings=SqlResealings(database),
        upgrades=SqlUpgrades(database),
        audit=SqlAuditLog(database),
        census=SqlCensus(database),
        webhooks=SqlWebhooks(database),
        notifications=SqlNotifications(database),
        signing=WebhookKeyFile(webhook_key),
        git=repositories,
        database=database,
        repositories=repositories,
    )


@asynccontextmanager
async def open_ports(settings: Settings) -> AsyncIterator[OpenPorts]:
    """The ports of an installation; the database connects when it is first used, and is closed at the end.

    Temporal is not among them: gateway, worker and command line wait for it each in their own way.

    Raises:
        Invalid: code ``database_url_invalid``.
    """
    async with open_database(settings.effective_database_url) as database:
        yield ports_on(database, BareGitServer(settings.effective_git_root), settings.home / FILE_NAME)
