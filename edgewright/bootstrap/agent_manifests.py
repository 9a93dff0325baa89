"""What runs the agent on an edge, and what takes it away: accounts, rights, pods."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files as resources
from typing import Any

import yaml

from edgewright.domain.own_objects import ObjectKey
from edgewright.domain.rendering.manifests import labelled, manifest_key, manifests_yaml

FILES = ("rbac.yaml", "detach.yaml", "deployment.yaml")
BOUNDS = "agent-policy.yaml"
POLICY, RIGHT = "fetching-policy.yaml", "fetching-right.yaml"
RUNS = "EDGEWRIGHT_AGENT_RUNS"
"""Variable by which the agent knows its image: Kubernetes tells no container what it runs."""
_DETACHER = "edgewright-detach"
_WRITTEN_FOR = "edgewright"
"""The namespace in those files."""


@dataclass(frozen=True, slots=True)
class AgentPod:
    """What the pods of agent and detacher run from.

    Args:
        image: that has both programs, with a tag or digest.
        pull_secret: name of a Secret of theirs with the password of the registry, put there by an operator.
        priority_class: name of their PriorityClass.
    """

    image: str
    pull_secret: str | None = None
    priority_class: str | None = None


def render_agent(
    pod: AgentPod, *, namespace: str, labels: Mapping[str, str] | None = None, again_and_again: bool = False
) -> bytes:
    """The agent's manifests, as YAML.

    Args:
        namespace: of the cluster's own objects.
        labels: that each object gets besides its own.
        again_and_again: they are applied at intervals; they do not say then how many pods the detacher has, or a
            detacher at work would lose its pod.
    """
    manifests = [_in_place(one, namespace) for one in _manifests(*FILES)]
    for one in manifests:
        if one["kind"] == "Deployment":
            _fill_in(one["spec"]["template"]["spec"], pod)
            if again_and_again and one["metadata"]["name"] == _DETACHER:
                del one["spec"]["replicas"]
    return manifests_yaml([labelled(one, labels or {}) for one in manifests])


def render_fetching_policy(*, namespace: str) -> bytes:
    """What the agent may change of Flux's sources, and what bounds its other rights; needs Kubernetes 1.30.

    Args:
        namespace: of the agent.
    """
    manifests = [_in_place(one, namespace) for one in _manifests(BOUNDS, POLICY)]
    for policy in manifests:
        if policy["kind"] == "ValidatingAdmissionPolicy":
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
    return [ObjectKey(*manifest_key(_in_place(one, namespace))) for one in _manifests(*FILES, BOUNDS, POLICY, RIGHT)]


def _manifests(*names: str) -> Iterator[dict[str, Any]]:
    folder = resources("edgewright").joinpath("agent")
    for name in names:
        yield from yaml.safe_load_all(folder.joinpath(name).read_text(encoding="utf-8"))


def _in_place(manifest: dict[str, Any], namespace: str) -> dict[str, Any]:
    for holder in (manifest["metadata"], *manifest.get("subjects", ())):
        if holder.get("namespace") == _WRITTEN_FOR:
            holder["namespace"] = namespace
    return manifest


def _fill_in(spec: dict[str, Any], pod: AgentPod) -> None:
    [container] = spec["containers"]
    container["image"] = pod.image
    for variable in container["env"]:
        if variable["name"] == RUNS:
            variable["value"] = pod.image
    if pod.pull_secret is not None:
        spec["imagePullSecrets"] = [{"name": pod.pull_secret}]
    if pod.priority_class is not None:
        spec["priorityClassName"] = pod.priority_class
