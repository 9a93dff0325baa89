"""A Kubernetes cluster without machines: etcd, API server, controller manager, and kwok for nodes and pods.

No container ever runs: kwok says of each pod on its node that it is ready. Controllers run as processes of this
machine, under the tokens of their ServiceAccounts.
"""

import json
import shutil
import ssl
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from components import component
from free_ports import free_port
from module_files import module_folder

from edge_cluster.certificates import Authority, Identity
from edge_cluster.kubectl import Kubectl, surroundings, write_config
from edge_cluster.programs import api_server, controller_manager, etcd, kwok
from edgewright.cli.ledger import ProcessLedger
from edgewright.cli.parts import answers
from edgewright.cli.supervisor import Part, RestartPolicy, StopSignals, Supervisor

READY_SECONDS = 120.0
TOKEN_SECONDS = 24 * 3600
LIKE_A_KUBELET = RestartPolicy(longest_pause=1.0, deaths=1_000_000)
"""What was killed comes back, however often."""
GRACE_SECONDS = 0.0
"""Nobody needs what a cluster holds when it ends; an API server that somebody still watches takes its time to end."""
PROGRAMS = ("etcd", "kube-apiserver", "kubectl", "kwok")
CORE, APPS = "api/v1", "apis/apps/v1"
KINDS = {
    "clusterrole": "apis/rbac.authorization.k8s.io/v1",
    "namespace": CORE,
    **dict.fromkeys(("configmap", "pod", "secret", "service"), CORE),
    "deployment": APPS,
    "gitrepository": "apis/source.toolkit.fluxcd.io/v1",
    "helmrelease": "apis/helm.toolkit.fluxcd.io/v2",
    "kustomization": "apis/kustomize.toolkit.fluxcd.io/v1",
    "sealedsecret": "apis/bitnami.com/v1alpha1",
}
"""Kind -> where the API server has it."""
WITHOUT_NAMESPACE = ("clusterrole", "namespace")
REQUESTED = "reconcile.fluxcd.io/requestedAt"
"""Annotation with which Flux is asked to look at something now."""
LIVING: list[Path] = []
"""Folders of the clusters that this process runs."""
NODE_NAME = "node-1"
NODE = f"""
apiVersion: v1
kind: Node
metadata:
  name: {NODE_NAME}
  annotations: {{kwok.x-k8s.io/node: fake, node.alpha.kubernetes.io/ttl: "0"}}
  labels: {{kubernetes.io/os: linux, kubernetes.io/arch: amd64, kubernetes.io/hostname: {NODE_NAME}}}
"""


class Cluster:
    """One cluster, in a folder of its own. Use ``edge_cluster``.

    Args:
        folder: made by the caller, removed by the caller.
        say: takes one plain line for whoever waits.
        flags: of its API server, on top of the usual ones.
    """

    def __init__(self, folder: Path, say: Callable[[str], None], *, flags: Sequence[str] = ()) -> None:
        self.folder = folder
        self._flags = flags
        for made in ("pki", "logs", "users"):
            (folder / made).mkdir(mode=0o700)
        self.authority = Authority(folder / "pki")
        self.port = free_port()
        self.etcd_port = free_port()
        self.supervisor = Supervisor(ProcessLedger(folder), StopSignals(), say, LIKE_A_KUBELET)
        identity = self.authority.client("admin", "system:masters")
        self.kubectl = Kubectl(component("kubectl", say=say), self._certified("admin", identity))
        """As admin of everything."""
        self.http = self._client(identity)
        """As the same, for what is asked again and again: each kubectl takes twenty times as long to start."""

    @property
    def url(self) -> str:
        """The URL of the API server."""
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when the API server answers, has what every cluster has, and a node is ready."""
        etcd_health = f"http://127.0.0.1:{self.etcd_port}/health"
        self.run("etcd", etcd(self.folder / "etcd", self.etcd_port), ready=lambda: answers(etcd_health))
        server = api_server(self.authority, self.port, etcd_port=self.etcd_port, flags=self._flags)
        self.run("kube-apiserver", server, ready=lambda: self.has("/readyz"))
        manager = self._certified("manager", self.authority.client("system:kube-controller-manager"))
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self.run(
            "kube-controller-manager", controller_manager(self.authority, manager), ready=lambda: self.has(account)
        )
        self.kubectl.apply(NODE)
        self.run(
            "kwok", kwok(self.folder, self.kubectl.config), ready=lambda: self.has("/api/v1/nodes/node-1", _is_ready)
        )

    def stop(self) -> None:
        """Ends everything, in the opposite order of its start."""
        self.supervisor.stop()
        self.http.close()

    def has(self, path: str, holds: Callable[[httpx.Response], bool] = lambda _: True) -> bool:
        """Whether the API server answers with success, and what it answers is as wanted."""
        try:
            answer = self.http.get(path, timeout=10)
        except httpx.TransportError:
            return False
        return answer.is_success and holds(answer)

    def find(self, kind: str, name: str = "", *, namespace: str = "default") -> Any:
        """An object as JSON, or the list of all that are in a namespace; None if it, or its kind, is not there.

        Args:
            kind: one of ``KINDS``.

        Raises:
            RuntimeError: the API server does not answer, or refuses.
        """
        where = "" if kind in WITHOUT_NAMESPACE else f"/namespaces/{namespace}"
        plural = f"{kind.removesuffix('y')}ies" if kind.endswith("y") else f"{kind}s"
        try:
            answer = self.http.get(f"/{KINDS[kind]}{where}/{plural}" + (f"/{name}" if name else ""), timeout=10)
        except httpx.TransportError as error:
            raise RuntimeError(f"{kind} {name}: {error}") from error
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        if not answer.is_success:
            raise RuntimeError(f"{kind} {name}: {answer.text}")
        return answer.json()

    def fetch_now(self, name: str = "self-link", *, namespace: str = "edgewright") -> str:
        """Asks Flux to fetch a GitRepository, as ``flux reconcile source git`` does; returns what it says of it then.

        Flux fetches by itself at its interval, and when something else asks it to. Until that is soon, tests do.

        Raises:
            RuntimeError: it has not fetched in time, or the API server does not answer.
        """
        path = f"/{KINDS['gitrepository']}/namespaces/{namespace}/gitrepositories/{name}"
        asked = {"metadata": {"annotations": {REQUESTED: datetime.now(UTC).isoformat()}}}
        headers = {"Content-Type": "application/merge-patch+json"}
        answer = self.http.patch(path, content=json.dumps(asked), headers=headers)
        if not answer.is_success:
            raise RuntimeError(f"gitrepository {name}: {answer.text}")
        said: list[str] = []

        def is_done() -> bool:
            found = self.find("gitrepository", name, namespace=namespace)
            status = found.get("status", {})
            # Whoever else has asked meanwhile has done so after us.
            if status.get("lastHandledReconcileAt") == found["metadata"]["annotations"][REQUESTED]:
                # Of an object that it has just met Flux says so before it has fetched anything.
                ready = [each for each in status.get("conditions", ()) if each["type"] == "Ready"]
                said.extend(each["message"] for each in ready if each["status"] != "Unknown")
            return bool(said)

        if not self.supervisor.wait_for(is_done, seconds=READY_SECONDS):
            raise RuntimeError(f"Flux does not fetch {namespace}/{name}")
        return "".join(said)

    def run(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        ready: Callable[[], bool],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Starts a program that is kept running from then on, and returns when it serves."""
        part = Part(
            name=name,
            command=[str(word) for word in command],
            environment={**surroundings(), **(environment or {})},
            log=self.folder / "logs" / f"{name}.log",
            ready=ready,
            grace=GRACE_SECONDS,
            folder=self.folder,
        )
        self.supervisor.start(part)
        self.supervisor.wait_ready(name, seconds=READY_SECONDS)

    def account_token(self, namespace: str, name: str) -> str:
        """A real token of a ServiceAccount.

        Raises:
            RuntimeError: the API server does not answer, or there is no such account.
        """
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS},
        }
        where = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        try:
            answer = self.http.post(where, json=asked, timeout=10)
        except httpx.TransportError as error:
            raise RuntimeError(f"token of {namespace}/{name}: {error}") from error
        if not answer.is_success:
            raise RuntimeError(f"token of {namespace}/{name}: {answer.text}")
        token: str = answer.json()["status"]["token"]
        return token

    def as_account(self, namespace: str, name: str) -> Kubectl:
        """kubectl with such a token."""
        file = self.folder / "users" / f"{namespace}-{name}.yaml"
        self._config(file, {"token": self.account_token(namespace, name)}, namespace)
        return Kubectl(self.kubectl.program, file)

    def _certified(self, name: str, identity: Identity) -> Path:
        credentials = {"client-certificate": str(identity.certificate), "client-key": str(identity.key)}
        return self._config(self.folder / "users" / f"{name}.yaml", credentials)

    def _config(self, file: Path, credentials: Mapping[str, str], namespace: str = "default") -> Path:
        authority = self.authority.identity.certificate
        return write_config(file, server=self.url, authority=authority, credentials=credentials, namespace=namespace)

    def _client(self, identity: Identity) -> httpx.Client:
        trusted = ssl.create_default_context(cafile=self.authority.identity.certificate)
        trusted.load_cert_chain(identity.certificate, identity.key)
        return httpx.Client(base_url=self.url, verify=trusted, trust_env=False, timeout=60)


def _is_ready(node: httpx.Response) -> bool:
    conditions = node.json().get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


@contextmanager
def edge_cluster(say: Callable[[str], None] = print, *, flags: Sequence[str] = ()) -> Iterator[Cluster]:
    """A cluster, until the end of the context.

    Args:
        flags: of its API server, on top of the usual ones.

    Raises:
        ComponentMissing: a program of it cannot be had here.
    """
    for name in PROGRAMS:
        component(name, say=say)
    module_folder("kwok-stages", say=say)
    folder = Path(tempfile.mkdtemp(prefix="edgewright-edge-"))
    cluster = Cluster(folder, say, flags=flags)
    LIVING.append(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        LIVING.remove(folder)
        shutil.rmtree(folder, ignore_errors=True)
