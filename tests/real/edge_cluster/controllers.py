"""What is installed on an edge: Flux, and sealed-secrets with its real controller."""

import base64
import os
import signal
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
from components import component
from free_ports import free_port
from loopback import PLAIN
from module_files import flux_definitions, module_folder

from edge_cluster.cluster import READY_SECONDS, Cluster
from edge_cluster.pods import pod, renew_token
from edge_cluster.release import release
from edgewright.cli.parts import answers

SEALED_SECRETS_NAMESPACE = "kube-system"
SEALED_SECRETS_ACCOUNT = "sealed-secrets-controller"
KEY_LABEL = "sealedsecrets.bitnami.com/sealed-secrets-key"
SEALED_SECRETS_RIGHTS = Path(__file__).with_name("sealed-secrets.yaml")


class SealedSecrets:
    """The controller, under its ServiceAccount, with the rights that upstream gives it.

    Args:
        options: that it is started with.
        installed: somebody has brought its kind, its account and its rights.
    """

    def __init__(self, cluster: Cluster, *, options: Sequence[str] = (), installed: bool = False) -> None:
        self._cluster = cluster
        self._options, self._installed = options, installed
        self.port = free_port()

    @property
    def url(self) -> str:
        """The URL of its own API: ``/v1/cert.pem``, ``/v1/verify``, ``/v1/rotate``."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when it hands out its certificate."""
        cluster, host = self._cluster, "127.0.0.1"
        if not self._installed:
            cluster.kubectl.apply_definitions(module_folder("sealed-secrets-crds"))
            cluster.kubectl.apply(SEALED_SECRETS_RIGHTS.read_text())
        command: list[str | Path] = [
            component("sealed-secrets-controller"),
            *self._options,
            f"--listen-addr={host}:{self.port}",
            f"--listen-metrics-addr={host}:{free_port()}",
        ]
        started = pod(cluster, SEALED_SECRETS_NAMESPACE, SEALED_SECRETS_ACCOUNT, command)
        cluster.run(
            "sealed-secrets",
            started.command,
            ready=lambda: answers(f"{self.url}/v1/cert.pem"),
            environment=started.environment,
        )

    def certificate(self) -> str:
        """PEM, of its newest key; what was last seen of one that is just starting is nothing."""
        try:
            return httpx.get(f"{self.url}/v1/cert.pem", **PLAIN).text
        except httpx.TransportError:
            return ""

    def renew_key(self) -> str:
        """Has it make a new key, as it does every 30 days; returns the name of the Secret that holds it."""
        before, held = self.certificate(), set(self.keys())
        # Keys are ordered by the second in which they were made.
        self._until(lambda: int(time.time()) > max(map(_made_at, self._key_secrets())))
        os.kill(self._pid(), signal.SIGUSR1)
        self._until(lambda: self.certificate() not in {"", before} and len(self.keys()) > len(held))
        [new] = set(self.keys()) - held
        return new

    def keys(self) -> list[str]:
        """Names of the Secrets that hold its keys."""
        return [each["metadata"]["name"] for each in self._key_secrets()]

    def lose_keys(self, *names: str) -> None:
        """They are gone, as after an incomplete restore; it is started again, for it holds them in memory."""
        for name in names:
            self._cluster.kubectl("delete", "secret", name, "--namespace", SEALED_SECRETS_NAMESPACE)
        self.restart()

    def restart(self) -> None:
        """As another pod of it: killed, and started under a fresh token."""
        renew_token(self._cluster, SEALED_SECRETS_NAMESPACE, SEALED_SECRETS_ACCOUNT)
        before = self._pid()
        os.kill(before, signal.SIGKILL)
        supervisor = self._cluster.supervisor
        self._until(lambda: supervisor.pid_of("sealed-secrets") not in {None, before} and bool(self.certificate()))

    def newest_private_key(self) -> str:
        """PEM."""
        newest = max(self._key_secrets(), key=_made_at)
        return base64.b64decode(newest["data"]["tls.key"]).decode()

    def _key_secrets(self) -> list[dict[str, Any]]:
        found = self._cluster.find("secret", namespace=SEALED_SECRETS_NAMESPACE)["items"]
        return [each for each in found if KEY_LABEL in each["metadata"].get("labels", {})]

    def _pid(self) -> int:
        pid = self._cluster.supervisor.pid_of("sealed-secrets")
        assert pid
        return pid

    def _until(self, holds: Callable[[], bool]) -> None:
        assert self._cluster.supervisor.wait_for(holds, seconds=READY_SECONDS)


def _made_at(secret: dict[str, Any]) -> float:
    return datetime.fromisoformat(secret["metadata"]["creationTimestamp"]).timestamp()


def define_flux(cluster: Cluster) -> None:
    """Flux's kinds, without anything that acts on them."""
    cluster.kubectl.apply(*(file.read_text() for file in flux_definitions()))
    _await_definitions(cluster)


def install_flux(cluster: Cluster) -> None:
    """All of its release; its pods wait for somebody who runs them."""
    cluster.kubectl.apply(release().decode())
    _await_definitions(cluster)


def _await_definitions(cluster: Cluster) -> None:
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
