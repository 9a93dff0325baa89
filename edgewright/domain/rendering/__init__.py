"""What the centre puts into a driving repository: pure and deterministic.

``repository`` makes every generated file of a cluster from its templates, ``secret_drivers`` what drives the secrets
of each namespace, ``removal`` takes the workloads away when a cluster is deleted, and adds the rights to give up
what seals its secrets, ``releases`` finds what is installed from the centre's own charts, ``deliverable`` refuses
what YAML cannot carry, ``manifests`` checks Kubernetes manifests and spells them as YAML, ``components`` brings Flux
and the agent to the version that is wanted.
"""

from edgewright.domain.rendering.components import OwnComponents, WantedComponent
from edgewright.domain.rendering.deliverable import check_values
from edgewright.domain.rendering.layout import (
    BY_HAND_FOLDER,
    CLUSTER_FOLDER,
    README_PATH,
    SECRETS_FOLDER,
    SELF_LINK_PATH,
)
from edgewright.domain.rendering.releases import ChartRelease, releases_of_shared_charts
from edgewright.domain.rendering.removal import READ_BY_PURGE, purge_files, workload_removal
from edgewright.domain.rendering.repository import (
    FETCHED_BY_ITSELF,
    FETCHED_WHEN_ASKED,
    RENDERER_VERSION,
    RenderInput,
    render_changes,
    render_digest,
    render_repository,
)

__all__ = [
    "BY_HAND_FOLDER",
    "CLUSTER_FOLDER",
    "FETCHED_BY_ITSELF",
    "FETCHED_WHEN_ASKED",
    "README_PATH",
    "READ_BY_PURGE",
    "RENDERER_VERSION",
    "SECRETS_FOLDER",
    "SELF_LINK_PATH",
    "ChartRelease",
    "OwnComponents",
    "RenderInput",
    "WantedComponent",
    "check_values",
    "purge_files",
    "releases_of_shared_charts",
    "render_changes",
    "render_digest",
    "render_repository",
    "workload_removal",
]
