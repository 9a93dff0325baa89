"""Programs of this machine that find what a pod finds: its ServiceAccount's token, and where the API server is."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edge_cluster.cluster import Cluster

IN_CLUSTER = """
mount -t tmpfs tmpfs /run && mkdir -p "$1" /run/edgewright
cp "$2" "$1/token" && cp "$3" "$1/ca.crt" && printf %s "$4" > "$1/namespace" || exit
shift 4
exec "$@"
"""
"""A /run of its own, with a pod's files, and the folder that the pods of agent and detacher have for their probes."""
ACCOUNT_FOLDER = "/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True)
class Pod:
    """What to start, and its variables."""

    command: list[str | Path]
    environment: dict[str, str]


def pod(cluster: Cluster, namespace: str, account: str, command: Sequence[str | Path]) -> Pod:
    """A command as a ServiceAccount of a namespace, with a fresh token."""
    token = renew_token(cluster, namespace, account)
    script = cluster.folder / "in-cluster.sh"
    script.write_text(IN_CLUSTER)
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return Pod(
        [
            *("unshare", "--mount", *as_root, "sh"),
            script,
            *(ACCOUNT_FOLDER, token, cluster.authority.identity.certificate, namespace),
            *command,
        ],
        {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(cluster.port),
            "POD_NAMESPACE": namespace,
        },
    )


def beside(pid: int) -> list[str]:
    """What a command begins with that is to see the files of a pod whose program has this PID."""
    as_root = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
    return ["nsenter", "--target", str(pid), *as_root, "--mount"]


def renew_token(cluster: Cluster, namespace: str, account: str) -> Path:
    """A fresh one, in the file that pods of the account take theirs from when they start."""
    token = cluster.folder / "users" / f"{namespace}-{account}.token"
    token.touch(mode=0o600)
    token.write_text(cluster.account_token(namespace, account))
    return token
