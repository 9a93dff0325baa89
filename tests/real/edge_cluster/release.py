"""Flux's release file, made as upstream makes it: of its controllers' own manifests, as their modules bring them.

What ``flux install --export`` patches and adds stands here. The manifests of helm-controller cannot be had: they are
those of kustomize-controller with its names, and its kind is made of its Go types.
"""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from components import component
from go_programs import FLUX_RELEASE, KUSTOMIZE_CONTROLLER
from module_files import HELM_KINDS, helm_definitions, module_folder

NAMESPACE = "flux-system"
CONTROLLERS = ("source-controller", "kustomize-controller", "helm-controller")
AS_HELM = {
    "kustomize-controller": "helm-controller",
    "kustomize.toolkit": "helm.toolkit",
    "namePrefix: kustomize-": "namePrefix: helm-",
    "kustomizations": "helmreleases",
    KUSTOMIZE_CONTROLLER: HELM_KINDS,
}
"""What differs in helm-controller's manifests."""
ADDED = f"""
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels: {{pod-security.kubernetes.io/warn: restricted, pod-security.kubernetes.io/warn-version: latest}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: allow-egress, namespace: {NAMESPACE}}}
spec:
  podSelector: {{}}
  ingress: [{{from: [{{podSelector: {{}}}}]}}]
  egress: [{{}}]
  policyTypes: [Ingress, Egress]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: allow-scraping, namespace: {NAMESPACE}}}
spec:
  podSelector: {{}}
  ingress: [{{from: [{{namespaceSelector: {{}}}}], ports: [{{port: 8080, protocol: TCP}}]}}]
  policyTypes: [Ingress]
"""
MEMORY = {
    "name": "GOMEMLIMIT",
    "valueFrom": {"resourceFieldRef": {"containerName": "manager", "resource": "limits.memory"}},
}


@cache
def release() -> bytes:
    """The whole file."""
    with tempfile.TemporaryDirectory(prefix="edgewright-flux-") as made:
        folder = Path(made)
        for name in CONTROLLERS[:2]:
            shutil.copytree(module_folder(f"{name}-config"), folder / name / "config")
        _copy_as_helm(folder / CONTROLLERS[1], folder / CONTROLLERS[2])
        for name in CONTROLLERS:
            _write(folder / name, _patched(name))
        (folder / "added.yaml").write_text(ADDED)
        _write(folder, {"resources": ["added.yaml", *CONTROLLERS], "labels": _labels(version=FLUX_RELEASE)})
        built = subprocess.run(
            [component("kubectl"), "kustomize", folder], capture_output=True, text=True, check=False
        )
        assert built.returncode == 0, built.stderr
    return built.stdout.encode()


def another_release(version: str, tag: str, *more: str) -> bytes:
    """The same under another version, with images of another tag, and more manifests behind its own."""
    text = (
        release()
        .decode()
        .replace(f"app.kubernetes.io/version: {FLUX_RELEASE}", f"app.kubernetes.io/version: {version}")
    )
    tagged = re.sub(r"(image: ghcr\.io/fluxcd/[a-z-]+):\S+", rf"\g<1>:{tag}", text)
    return "\n---\n".join([tagged.rstrip(), *more]).encode()


def _copy_as_helm(source: Path, folder: Path) -> None:
    shutil.copytree(source, folder)
    for file in folder.rglob("*.yaml"):
        text = file.read_text()
        for theirs, own in AS_HELM.items():
            text = text.replace(theirs, own)
        file.write_text(text)
    bases = folder / "config" / "crd" / "bases"
    shutil.rmtree(bases)
    shutil.copytree(helm_definitions(), bases)


def _patched(name: str) -> Mapping[str, Any]:
    """A controller and its rights, under an account of its own."""
    template, container = "/spec/template/spec", "/spec/template/spec/containers/0"
    of_deployment = [
        {
            "op": "add",
            "path": f"{container}/args/0",
            "value": "--events-addr=",
        },  # there is no notification-controller
        {"op": "add", "path": f"{container}/env/-", "value": MEMORY},
        {"op": "add", "path": f"{template}/serviceAccountName", "value": name},
        {"op": "add", "path": f"{template}/priorityClassName", "value": "system-cluster-critical"},
        {"op": "add", "path": f"{template}/nodeSelector", "value": {"kubernetes.io/os": "linux"}},
    ]
    subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
    of_binding = [{"op": "replace", "path": "/subjects/0", "value": subject}]
    return {
        "namespace": NAMESPACE,
        "resources": ["account.yaml", *(f"config/{part}" for part in ("crd", "rbac", "manager"))],
        "labels": _labels(component=name),
        "images": [{"name": f"fluxcd/{name}", "newName": f"ghcr.io/fluxcd/{name}"}],
        "patches": [
            {"target": {"kind": "Deployment"}, "patch": json.dumps(of_deployment)},
            {"target": {"kind": "(Cluster)?RoleBinding"}, "patch": json.dumps(of_binding)},
        ],
    }


def _labels(**own: str) -> Sequence[Mapping[str, Any]]:
    pairs = {f"app.kubernetes.io/{name}": value for name, value in own.items()}
    common = {"app.kubernetes.io/instance": NAMESPACE, "app.kubernetes.io/part-of": "flux"}
    return [{"pairs": {**common, **pairs}, "includeTemplates": True}]


def _write(folder: Path, kustomization: Mapping[str, Any]) -> None:
    """A Kustomization, which JSON will do for, and the account that it names."""
    kind = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (folder / "kustomization.yaml").write_text(json.dumps({**kind, **kustomization}))
    if "account.yaml" in kustomization["resources"]:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": folder.name}}
        (folder / "account.yaml").write_text(json.dumps(account))
