"""The command lines of a cluster's own programs; everything listens on 127.0.0.1."""

from collections.abc import Sequence
from pathlib import Path

from components import component
from free_ports import free_port
from module_files import module_folder

from edge_cluster.certificates import Authority

Command = list[str | Path]
WITHOUT_POLICIES = (
    "--disable-admission-plugins=ValidatingAdmissionPolicy",
    "--runtime-config=admissionregistration.k8s.io/v1/validatingadmissionpolicies=false,"
    "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings=false",
)
"""Flags of an API server that knows no ValidatingAdmissionPolicies, like those before Kubernetes 1.30."""


def etcd(folder: Path, port: int) -> Command:
    """Keeps its data in the folder; forgetful, as nothing here outlives the machine."""
    here, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{free_port()}"
    return [
        component("etcd"),
        *("--name", "one", "--data-dir", folder),
        *("--listen-client-urls", here, "--advertise-client-urls", here),
        *("--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers),
        *("--initial-cluster", f"one={peers}", "--unsafe-no-fsync"),
    ]


def api_server(authority: Authority, port: int, *, etcd_port: int, flags: Sequence[str] = ()) -> Command:
    """With RBAC, and tokens for ServiceAccounts.

    Args:
        flags: on top of these.
    """
    server = authority.server("kube-apiserver")
    return [
        component("kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--advertise-address=203.0.113.1",  # a loopback address is refused, and nobody asks there
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={server.certificate}",
        f"--tls-private-key-file={server.key}",
        f"--client-ca-file={authority.identity.certificate}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={authority.account_key.with_suffix('.pub')}",
        f"--service-account-signing-key-file={authority.account_key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        *flags,
    ]


def controller_manager(authority: Authority, config: Path) -> Command:
    """Makes ServiceAccounts, collects garbage, ends namespaces."""
    return [
        component("kube-controller-manager"),
        f"--kubeconfig={config}",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={authority.account_key}",
        f"--root-ca-file={authority.identity.certificate}",
        f"--cluster-signing-cert-file={authority.identity.certificate}",
        f"--cluster-signing-key-file={authority.identity.key}",
        "--leader-elect=false",
    ]


def kwok(folder: Path, config: Path) -> Command:
    """Says of the nodes that are marked as fake, and of the pods on them, that they are ready."""
    stages = module_folder("kwok-stages")
    kinds = ("node/fast/node-*", "node/heartbeat-with-lease/node-*", "pod/fast/pod-*")
    files = [path for kind in kinds for path in sorted(stages.glob(f"{kind}.yaml"))]
    together = folder / "kwok.yaml"
    together.write_text("\n---\n".join(file.read_text() for file in files))
    return [
        component("kwok"),
        f"--config={together}",
        f"--kubeconfig={config}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=40",
        "--node-ip=10.250.0.1",
        "--cidr=10.244.0.0/24",
        f"--server-address=127.0.0.1:{free_port()}",
    ]
