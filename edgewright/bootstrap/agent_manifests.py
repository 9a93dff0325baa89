"""What runs the agent on an edge, and what takes it away: accounts, rights, pods."""

from collections.abc import Iterator, Mapping
from importlib.resources import files as resources
from typing import Any

import yaml

from edgewright.domain.own_objects import ObjectKey
from edgewright.domain.rendering.manifests import labelled, manifest_key, manifests_yaml

FILES = ("rbac.yaml", "detach.yaml", "deployment.yaml")
POLICY, RIGHT = "fetching-policy.yaml", "fetching-right.yaml"
_WRITTEN_FOR = "edgewright"
"""The namespace in those files."""


def render_agent(*, namespace: str, image: str, labels: Mapping[str, str] | None = None) -> bytes:
    """The agent's manifests, as YAML.

    Args:
        namespace: of the cluster's own objects.
        image: that has the agent, with a tag or digest.
        labels: that each object gets besides its own.
    """
    return manifests_yaml([labelled(_in_place(one, namespace, image), labels or {}) for one in _manifests(*FILES)])


def render_fetching_policy(*, namespace: str) -> bytes:
    """What the agent may change of Flux's sources; needs Kubernetes 1.30.

    Args:
        namespace: of the agent.
    """
    manifests = [_in_place(one, namespace) for one in _manifests(POLICY)]
    [policy] = [one for one in manifests if one["kind"] == "ValidatingAdmissionPolicy"]
    [condition] = policy["spec"]["matchConditions"]
    condition["expression"] = condition["expression"].replace(
        f"serviceaccount:{_WRITTEN_FOR}:", f"serviceaccount:{namespace}:"
    )
    return manifests_yaml(manifests)


def render_fetching_right(*, namespace: str) -> bytes:
    """Lets the agent ask Flux to fetch; to be granted only once the policy denies.

    Args:
        namespace: of the agent.
    """
    return manifests_yaml([_in_place(one, namespace) for one in _manifests(RIGHT)])


def agent_objects(namespace: str) -> list[ObjectKey]:
    """The objects in all of those manifests."""
    return [ObjectKey(*manifest_key(_in_place(one, namespace))) for one in _manifests(*FILES, POLICY, RIGHT)]


def _manifests(*names: str) -> Iterator[dict[str, Any]]:
    folder = resources("edgewright").joinpath("agent")
    for name in names:
        yield from yaml.safe_load_all(folder.joinpath(name).read_text(encoding="utf-8"))


def _in_place(manifest: dict[str, Any], namespace: str, image: str = "") -> dict[str, Any]:
    for holder in (manifest["metadata"], *manifest.get("subjects", ())):
        if holder.get("namespace") == _WRITTEN_FOR:
            holder["namespace"] = namespace
    if manifest["kind"] == "Deployment":
        [container] = manifest["spec"]["template"]["spec"]["containers"]
        container["image"] = image
    return manifest
