"""The ports to everything that an installation stores."""

from dataclasses import dataclass

from edgewright.ports.accounts import Accounts
from edgewright.ports.audit import AuditLog
from edgewright.ports.census import Census
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.cluster_steps import ClusterSteps
from edgewright.ports.cluster_wishes import ClusterWishes
from edgewright.ports.config_store import ConfigStore
from edgewright.ports.edge_access import EdgeAccess
from edgewright.ports.edge_reports import EdgeReports
from edgewright.ports.git_server import GitServer
from edgewright.ports.notifications import Notifications, Webhooks
from edgewright.ports.operators import IdempotencyKeys, OperatorTokens
from edgewright.ports.resealing import Resealings
from edgewright.ports.secret_staging import EndedRequests, SecretStaging
from edgewright.ports.upgrades import Upgrades
from edgewright.ports.webhook_delivery import SigningSecrets


@dataclass(frozen=True, kw_only=True)
class StoredPorts:
    """The ports to database, repositories and webhook key, by their usual names.

    Args:
        git: blocks on disk; coroutines call it in a thread.
    """

    wishes: ClusterWishes
    directory: ClusterDirectory
    steps: ClusterSteps
    config: ConfigStore
    edge_access: EdgeAccess
    edge_reports: EdgeReports
    accounts: Accounts
    operators: OperatorTokens
    idempotency: IdempotencyKeys
    staging: SecretStaging
    ended_requests: EndedRequests
    resealings: Resealings
    upgrades: Upgrades
    audit: AuditLog
    census: Census
    webhooks: Webhooks
    notifications: Notifications
    signing: SigningSecrets
    git: GitServer
