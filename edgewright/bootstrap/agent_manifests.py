"""What runs the agent on an edge, and what takes it away: accounts, rights, pods."""

from collections.abc import Iterator, Mapping
from importlib.resources import files as resources
from typing import Any

import yaml

from edgewright.domain.own_objects import ObjectKey
from edgewright.domain.rendering.manifests import labelled, manifest_key, manifests_yaml

FILES = ("rbac.yaml", "detach.yaml", "deployment.yaml")
_WRITTEN_FOR = "edgewright"
"""The namespace in those files."""


def render_agent(*, namespace: str, image: str, labels: Mapping[str, str] | None = None) -> bytes:
    """The agent's manifests, as YAML.

    Args:
        namespace: of the cluster's own objects.
        image: that has the agent, with a tag or digest.
        labels: that each object gets besides its own.
    """
    return manifests_yaml([labelled(_in_place(one, namespace, image), labels or {}) for one in _manifests()])


def agent_objects(namespace: str) -> list[ObjectKey]:
    """The objects in those manifests."""
    return [ObjectKey(*manifest_key(_in_place(one, namespace, ""))) for one in _manifests()]


def _manifests() -> Iterator[dict[str, Any]]:
    folder = resources("edgewright").joinpath("agent")
    for file in FILES:
        yield from yaml.safe_load_all(folder.joinpath(file).read_text(encoding="utf-8"))


def _in_place(manifest: dict[str, Any], namespace: str, image: str) -> dict[str, Any]:
    for holder in (manifest["metadata"], *manifest.get("subjects", ())):
        if holder.get("namespace") == _WRITTEN_FOR:
            holder["namespace"] = namespace
    if manifest["kind"] == "Deployment":
        [container] = manifest["spec"]["template"]["spec"]["containers"]
        container["image"] = image
    return manifest
