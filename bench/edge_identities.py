"""Who the edges of a measured fleet are: each has credentials of its own, which follow from its UUID."""

import hashlib
from typing import Any
from uuid import UUID

from edgewright.domain.cluster import Role
from edgewright.domain.credentials import ROLE_PREFIXES

HOSTS = 3
FLUX_SOURCES = ("helm-charts", "self-link")
FLUX_KUSTOMIZATIONS = (("edge-secrets", "self-link"), ("flux-system", "helm-charts"), ("self-link", "self-link"))


def secret_of(cluster: UUID, role: Role) -> str:
    """The password of one of its credentials. Spelled as an edge's own; for a home that nobody else reaches."""
    return f"{ROLE_PREFIXES[role]}_{hashlib.sha256(f'{cluster} {role}'.encode()).hexdigest()}"


def status_of(certificate: str, revision: str, change: int = 0) -> dict[str, Any]:
    """What the agent of an edge with three hosts reports.

    Args:
        certificate: for sealing, PEM.
        revision: that Flux has fetched and applied there, as it spells it.
        change: another number is another status: one of the hosts is ready, or not.
    """
    ready = {"type": "Ready", "status": "True", "reason": "Succeeded", "message": f"stored artifact for '{revision}'"}
    hosts = [
        {
            "hostname": f"node-{number}",
            "arch": "amd64",
            "k8s_version": "v1.33.13",
            "control_plane": number == 0,
            "os_version": "Debian GNU/Linux 12 (bookworm)",
            "ready": number != 1 or change % 2 == 0,
        }
        for number in range(HOSTS)
    ]
    sources = [
        {"name": name, "suspended": False, "fetched": revision, "conditions": [ready]} for name in FLUX_SOURCES
    ]
    kustomizations = [
        {
            "name": name,
            "source": source,
            "suspended": False,
            "applied": revision,
            "attempted": revision,
            "conditions": [ready],
        }
        for name, source in FLUX_KUSTOMIZATIONS
    ]
    return {
        "hosts": hosts,
        "kubeseal_cert": certificate,
        "observed_revision": revision,
        "flux": {"sources": sources, "kustomizations": kustomizations},
        "versions": {"agent": "0.2.0", "kubernetes": "v1.33.13"},
    }
