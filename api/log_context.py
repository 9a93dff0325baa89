"""Which cluster the log lines of a request are about."""

import re
from uuid import UUID

from structlog.contextvars import bind_contextvars

from edgewright.messages.names import workflow_id

BOUND = ("cluster", "workflow_id")
"""What ``about_cluster`` binds; the outermost middleware takes it back."""

_IN_PATH = re.compile(
    r"/(?:cluster|object|uuid)/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:/|$)", re.IGNORECASE
)


def about_cluster(cluster: UUID) -> None:
    """From here on, every line of this request names the cluster and its workflow."""
    bind_contextvars(cluster=str(cluster), workflow_id=workflow_id(cluster))


def about_path(path: str) -> None:
    """The same for the cluster that a path names, if it names one."""
    if match := _IN_PATH.search(path):
        about_cluster(UUID(match[1]))
