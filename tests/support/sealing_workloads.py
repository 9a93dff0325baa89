"""Deployments that are controllers of sealed-secrets, and such as only have its name: chart, detacher and uninstall
script tell them apart by one rule.
"""

from typing import Any

import yaml

CONTAINER: dict[str, Any] = {"name": "sealed-secrets-controller", "command": ["controller"]}
UPSTREAMS_LABELS = {"name": "sealed-secrets-controller"}
DIGEST = f"@sha256:{'0' * 64}"


def in_tools(image: str, *, labels: dict[str, str] | None = None, **container: Any) -> str:
    """A Deployment of somebody's in the namespace `tools`."""
    labels = labels or {"app": "theirs"}
    described = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "theirs", "namespace": "tools", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "theirs", "image": image, **container}]},
            },
        },
    }
    return yaml.safe_dump(described)


CONTROLLERS = {
    "upstream's plain manifest": in_tools(
        "docker.io/bitnami/sealed-secrets-controller:0.36.1", labels=UPSTREAMS_LABELS, **CONTAINER
    ),
    "from a mirror": in_tools("registry.example.com:5000/edge/bitnami/sealed-secrets-controller:0.36.1"),
    "without a registry": in_tools("sealed-secrets-controller"),
    "by digest": in_tools(f"docker.io/bitnami/sealed-secrets-controller{DIGEST}"),
    "upstream's plain manifest, image renamed": in_tools(
        f"registry.example.com/x{DIGEST}", labels=UPSTREAMS_LABELS, **CONTAINER
    ),
    "Bitnami's own chart": in_tools(
        "docker.io/bitnami/sealed-secrets:0.36.1",
        labels={"app.kubernetes.io/name": "sealed-secrets"},
        command=["/controller"],
        args=["--key-prefix", "sealed-secrets-key"],
    ),
}
NO_CONTROLLERS = {
    "sealed-secrets-web": in_tools(
        "ghcr.io/bakito/sealed-secrets-web:3.1.6",
        labels={"app.kubernetes.io/name": "sealed-secrets-web"},
        args=["--sealed-secrets-service-name=sealed-secrets-controller"],
    ),
    "kubeseal": in_tools(
        "docker.io/bitnami/sealed-secrets-kubeseal:0.36.1", labels={"app.kubernetes.io/name": "sealed-secrets"}
    ),
    "an exporter": in_tools("registry.example.com/sealed-secrets-controller-exporter:1"),
    "in the folder of its name": in_tools("registry.example.com/sealed-secrets-controller/dashboards:1"),
    "another controller": in_tools("registry.example.com/operator:1", command=["/controller"], args=["--leader"]),
}
