"""A cluster's release of its chart, by the real helm, and what its sealed-secrets has made."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import yaml
from rendering_stage import render_input

from edge_cluster.controllers import SEALED_SECRETS_NAMESPACE, SealedSecrets
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.domain.rendering import render_repository
from edgewright.sealing import Plaintext, Scope, SealedValue, parse_certificate, put_values, seal

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from edge_cluster.cluster import Cluster
    from edge_cluster.helm import Helm

HOME = "edgewright"


class Release:
    """What helm-controller makes of a cluster's HelmRelease; here helm is called with the same."""

    def __init__(self, helm: Helm, folder: Path, values: dict[str, Any] | None = None, **cluster: UUID) -> None:
        files = render_repository(render_input(values=values or {}, **cluster))
        rendered = yaml.safe_load(files["edo/cluster/edge-cluster.yaml"])
        self._helm = helm
        self.name = rendered["metadata"]["name"]
        self.values = folder / f"{self.name}-values.yaml"
        self.values.write_text(yaml.safe_dump(rendered["spec"]["values"]))

    def installed(self, chart: Path) -> None:
        self._helm("upgrade", "--install", self.name, chart, *self._arguments())

    def refused(self, chart: Path) -> str:
        done = self._helm.try_("upgrade", "--install", self.name, chart, *self._arguments())
        assert done.returncode != 0, done.stdout
        return done.stderr

    def stopped_by(self, chart: Path) -> str:
        """What would stop it on the cluster as it is; empty: nothing. Changes nothing."""
        done = self._helm.try_("upgrade", "--install", self.name, chart, *self._arguments(), "--dry-run=server")
        return done.stderr if done.returncode else ""

    def uninstalled(self) -> None:
        self._helm("uninstall", self.name, "--namespace", HOME)

    def _arguments(self) -> list[str]:
        # helm-controller takes what is there already into its releases, unless it is told not to.
        return ["--namespace", HOME, "--values", str(self.values), "--take-ownership"]


def deployment(cluster: Cluster) -> Any:
    return cluster.find("deployment", "sealed-secrets-controller", namespace=SEALED_SECRETS_NAMESPACE)


def options(cluster: Cluster) -> list[str]:
    """What the chart starts the controller with."""
    [container] = deployment(cluster)["spec"]["template"]["spec"]["containers"]
    arguments: list[str] = container["args"]
    return arguments


def sealed(controller: SealedSecrets, name: str, value: str) -> str:
    certificate = parse_certificate(controller.certificate(), now=datetime.now(UTC))
    secret = SecretReference("default", name)
    ciphertext = seal(Plaintext(value.encode()), certificate, scope=Scope.STRICT, secret=secret)
    value_of = SealedValue(ciphertext, certificate.fingerprint, datetime.now(UTC))
    return put_values(None, secret, {"password": value_of}).decode()


def opened(cluster: Cluster, name: str) -> str | None:
    secret = cluster.find("secret", name)
    return base64.b64decode(secret["data"]["password"]).decode() if secret else None
