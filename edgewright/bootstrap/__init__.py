"""The bootstrap script: what ``curl … | sh -`` runs to attach a Kubernetes cluster."""

from edgewright.bootstrap.agent_manifests import (
    AgentPod,
    render_agent,
    render_fetching_policy,
    render_fetching_right,
)
from edgewright.bootstrap.installed import installed_labels, installed_objects, render_manifests
from edgewright.bootstrap.script import (
    MAX_SCRIPT_BYTES,
    BootstrapInput,
    bootstrap_line,
    render_refusal,
    render_script,
    render_uninstall,
)

__all__ = [
    "MAX_SCRIPT_BYTES",
    "AgentPod",
    "BootstrapInput",
    "bootstrap_line",
    "installed_labels",
    "installed_objects",
    "render_agent",
    "render_fetching_policy",
    "render_fetching_right",
    "render_manifests",
    "render_refusal",
    "render_script",
    "render_uninstall",
]
