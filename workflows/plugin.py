"""What a worker needs to run the workflows."""

from collections.abc import Sequence

from workflows.managed_cluster import ManagedCluster
from workflows.notifications import NotificationsWorkflow
from workflows.sweep import Sweep

WORKFLOWS: Sequence[type] = (ManagedCluster, Sweep, NotificationsWorkflow)
