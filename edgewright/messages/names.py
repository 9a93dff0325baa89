"""Names that Temporal stores: pinned here, never derived from a module path, never changed after a release."""

from typing import Final
from uuid import UUID

WORKFLOW_TYPE: Final = "ManagedCluster"
SWEEP_TYPE: Final = "Sweep"
SWEEP_SCHEDULE: Final = "edgewright-sweep"
NOTIFICATIONS_TYPE: Final = "Notifications"
NOTIFICATIONS_ID: Final = "notifications"
"""There is one such workflow, and it runs while notifications wait."""

CLUSTERS_QUEUE: Final = "edgewright-clusters"
"""Workflow tasks, and activities that somebody waits for."""
INTERACTIVE_QUEUE: Final = "edgewright-interactive"
"""Activities that a worker older than 0.2.0 has scheduled."""
BULK_QUEUE: Final = "edgewright-bulk"
"""Activities of commissioning and re-rendering: a thousand of them delay no secret."""
NOTIFICATIONS_QUEUE: Final = "edgewright-notifications"
"""Deliveries: a receiver that hangs delays nothing else."""

SIGNAL_RECONCILE: Final = "reconcile"
SIGNAL_DELETE: Final = "delete"
SIGNAL_EDGE_STATUS: Final = "edge_status"
SIGNAL_SEALING_KEY_ROTATED: Final = "sealing_key_rotated"

UPDATE_CHANGE_SECRETS: Final = "change_secrets"
UPDATE_RETRY_STEP: Final = "retry_step"
UPDATE_SKIP_STEP: Final = "skip_step"
UPDATE_PAUSE: Final = "pause"
UPDATE_RESUME: Final = "resume"

QUERY_READINESS: Final = "readiness"
QUERY_STATUS: Final = "status"
QUERY_STEPS: Final = "steps"

HEADER_CAUSE: Final = "edgewright-cause"
"""Beside messages and activities. A workflow hands it on as it is."""

ATTRIBUTE_NAME: Final = "EdgewrightName"
ATTRIBUTE_PHASE: Final = "EdgewrightPhase"
ATTRIBUTE_READY: Final = "EdgewrightReady"
ATTRIBUTE_AVAILABLE: Final = "EdgewrightAvailable"
ATTRIBUTE_LABELS: Final = "EdgewrightLabels"
ATTRIBUTE_REVISION: Final = "EdgewrightRevision"

SEARCH_ATTRIBUTES: Final[dict[str, str]] = {
    ATTRIBUTE_NAME: "Keyword",
    ATTRIBUTE_PHASE: "Keyword",
    ATTRIBUTE_READY: "Bool",
    ATTRIBUTE_AVAILABLE: "Keyword",
    ATTRIBUTE_LABELS: "KeywordList",
    ATTRIBUTE_REVISION: "Keyword",
}
"""Name -> type, as the Temporal CLI spells it."""

LABELS_BYTES: Final = 1900
"""Below the 2,048 bytes that Temporal takes as one search attribute, its metadata included."""


def workflow_id(cluster: UUID) -> str:
    """The workflow ID of a cluster."""
    return f"cluster-{cluster}"
