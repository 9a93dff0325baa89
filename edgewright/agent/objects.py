"""Kubernetes' objects, read into what the agent reports. Whatever is missing in one is left open."""

import json
from collections.abc import Iterable
from datetime import datetime
from itertools import compress
from operator import not_
from typing import Any

from lightkube.generic_resource import GenericNamespacedResource, create_namespaced_resource
from lightkube.resources.core_v1 import Node

from edgewright.agent.applied import AppliedObject, applied_of
from edgewright.agent.attachment import CLUSTER_LABEL
from edgewright.agent.flux_conditions import FluxCondition
from edgewright.agent.observation import OWN_SOURCE, Fetched, Host, Kustomized, Released
from edgewright.agent.opening import Opening, sealing_digest, stage_of, template_digest
from edgewright.agent.sealing_controller import SealedSecret

Kustomization = create_namespaced_resource("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations")
GitRepository = create_namespaced_resource("source.toolkit.fluxcd.io", "v1", "GitRepository", "gitrepositories")
HelmRelease = create_namespaced_resource("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases")
HelmChart = create_namespaced_resource("source.toolkit.fluxcd.io", "v1", "HelmChart", "helmcharts")
SealedSecretKind = create_namespaced_resource("bitnami.com", "v1alpha1", "SealedSecret", "sealedsecrets")
SCOPE_ANNOTATIONS = ("sealedsecrets.bitnami.com/cluster-wide", "sealedsecrets.bitnami.com/namespace-wide")
SPECIALISED_TAINT = "factoryplus.app.amrc.co.uk/specialised"
CONTROL_PLANE_LABELS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
SEALED_KEYS_ANNOTATION = "edgewright.dev/sealed-keys"
"""The centre's, on what it has sealed: key -> fingerprint of the certificate, and time."""
FETCH_ANNOTATION = "reconcile.fluxcd.io/requestedAt"
"""Flux's own: what it holds does not matter, only that it changes."""
_LISTED_KINDS = {
    ("source.toolkit.fluxcd.io", "GitRepository"),
    ("kustomize.toolkit.fluxcd.io", "Kustomization"),
    ("helm.toolkit.fluxcd.io", "HelmRelease"),
}
"""What the agent lists in its namespace."""
_NEVER_ASKED_FOR = ("", "Secret")
"""Whoever may ask for one may read it, and nobody is to be told to grant that."""
PASSING_CONDITIONS = ("Reconciling",)
"""Say only that Flux is at work."""
CHART_WAITS = frozenset({"NoSourceArtifact", "SourceUnavailable"})
"""Why a HelmChart cannot be made while its source is not there; that fails by itself."""
LONGEST_NAME = 320
"""Characters of a chart and its version."""


def host_of(node: Node) -> Host:
    """What is reported of a Node."""
    metadata, spec, status = node.metadata, node.spec, node.status
    labels = (metadata.labels if metadata else None) or {}
    taints = (spec.taints if spec else None) or []
    conditions = (status.conditions if status else None) or []
    system = status.nodeInfo if status else None
    return Host(
        hostname=(metadata.name if metadata else None) or "",
        control_plane=any(label in labels for label in CONTROL_PLANE_LABELS),
        ready=any(each.type == "Ready" and each.status == "True" for each in conditions),
        arch=(system.architecture if system else None) or None,
        k8s_version=(system.kubeletVersion if system else None) or None,
        os_version=(system.osImage if system else None) or None,
        specialised=next((each.value or "" for each in taints if each.key == SPECIALISED_TAINT), None),
    )


def kustomized_of(found: GenericNamespacedResource, cluster: str) -> Kustomized:
    """What is reported of a Kustomization; its schema is Flux's, which a cluster may have in another version.

    Args:
        cluster: UUID; what bears it is the centre's.
    """
    metadata = found.metadata
    name, namespace = (metadata.name or "", metadata.namespace or "") if metadata else ("", "")
    spec, status = _object(found.get("spec")), _object(found.get("status"))
    entries = _objects(_object(status.get("inventory")).get("entries"))
    listed, unlisted = _applied(entries if name == OWN_SOURCE else (), namespace)
    return Kustomized(
        name=name,
        source=str(_object(spec.get("sourceRef")).get("name", "")),
        suspended=spec.get("suspend") is True,
        applied=status.get("lastAppliedRevision") or None,
        attempted=status.get("lastAttemptedRevision") or None,
        conditions=_conditions(status),
        path=str(spec.get("path") or ""),
        holds=len(entries),
        deleting=metadata is not None and metadata.deletionTimestamp is not None,
        drivers=frozenset(f"{each.kind} {each.name}" for each in listed),
        unlisted=tuple(unlisted),
        own=_is_own(found, cluster),
    )


def released_of(found: GenericNamespacedResource, cluster: str) -> Released:
    """What is reported of a HelmRelease.

    Args:
        cluster: UUID; what bears it is the centre's.
    """
    metadata = found.metadata
    spec, status = _object(found.get("spec")), _object(found.get("status"))
    chart = _object(_object(spec.get("chart")).get("spec")).get("chart") or _object(spec.get("chartRef")).get("name")
    deployed = next((each for each in _objects(status.get("history")) if each.get("status") == "deployed"), {})
    waits = any(each.get("reason") == "SourceNotReady" for each in _objects(status.get("conditions")))
    return Released(
        name=(metadata.name if metadata else None) or "",
        chart=str(chart or "")[:LONGEST_NAME],
        suspended=spec.get("suspend") is True,
        applied=str(deployed.get("chartVersion") or "")[:LONGEST_NAME] or None,
        attempted=str(status.get("lastAttemptedRevision") or "")[:LONGEST_NAME] or None,
        conditions=_conditions(status),
        waits_for=str(status.get("helmChart") or "").partition("/")[2] if waits else None,
        own=_is_own(found, cluster),
    )


def failed_chart_of(found: GenericNamespacedResource) -> FluxCondition | None:
    """Why a HelmChart cannot be made; None: it can, or what it is made of is on its way."""
    stated = next((each for each in _conditions(_object(found.get("status"))) if each.type == "Ready"), None)
    failed = stated is not None and stated.status == "False" and stated.reason not in CHART_WAITS
    return stated if failed else None


def fetched_of(found: GenericNamespacedResource, cluster: str) -> Fetched:
    """What is reported of a GitRepository.

    Args:
        cluster: UUID; what bears it is the centre's.
    """
    metadata = found.metadata
    spec, status = _object(found.get("spec")), _object(found.get("status"))
    return Fetched(
        name=(metadata.name if metadata else None) or "",
        suspended=spec.get("suspend") is True,
        fetched=_object(status.get("artifact")).get("revision") or None,
        conditions=_conditions(status),
        url=str(spec.get("url", "")),
        own=_is_own(found, cluster),
        asked=((metadata.annotations if metadata else None) or {}).get(FETCH_ANNOTATION) or None,
        handled=str(status.get("lastHandledReconcileAt") or "") or None,
    )


def _is_own(found: GenericNamespacedResource, cluster: str) -> bool:
    return ((found.metadata.labels if found.metadata else None) or {}).get(CLUSTER_LABEL) == cluster


def _conditions(status: dict[str, Any]) -> tuple[FluxCondition, ...]:
    conditions = [
        FluxCondition(
            type=str(each.get("type", "")),
            status=str(each.get("status", "")),
            reason=str(each.get("reason", "")),
            message=str(each.get("message", "")),
            since=_time(each.get("lastTransitionTime")),
        )
        for each in _objects(status.get("conditions"))
        if each.get("type") not in PASSING_CONDITIONS
    ]
    return tuple(sorted(conditions, key=lambda each: each.type))


def sealed_secret_of(found: GenericNamespacedResource, namespace: str, name: str) -> SealedSecret:
    """What is sealed in a SealedSecret, and in which scope."""
    annotations = (found.metadata.annotations if found.metadata else None) or {}
    encrypted = _object(_object(found.get("spec")).get("encryptedData"))
    return SealedSecret(
        namespace=namespace,
        name=name,
        scope={key: annotations[key] for key in SCOPE_ANNOTATIONS if key in annotations},
        values={key: value for key, value in encrypted.items() if isinstance(value, str)},
    )


def opening_of(found: GenericNamespacedResource) -> Opening | None:
    """What the controller says of a SealedSecret; None for one that the centre has not sealed."""
    metadata = found.metadata
    annotations = (metadata.annotations if metadata else None) or {}
    if metadata is None or SEALED_KEYS_ANNOTATION not in annotations:
        return None
    namespace, name = metadata.namespace or "", metadata.name or ""
    stage, sentence = stage_of(metadata.generation, _object(found.get("status")))
    values, records = sealed_secret_of(found, namespace, name).values, _records(annotations[SEALED_KEYS_ANNOTATION])
    certificates = frozenset(records.get(key, "") for key in values)
    template = template_digest(_object(_object(found.get("spec")).get("template")))
    return Opening(namespace, name, sealing_digest(namespace, name, values), stage, sentence, certificates, template)


def _records(annotation: str | None) -> dict[str, str]:
    """Key -> fingerprint of the certificate that its value was sealed with, as the centre has written it."""
    try:
        said = _object(json.loads(annotation or "{}"))
    except (ValueError, RecursionError):
        return {}
    return {key: str(record[0]) for key, record in said.items() if isinstance(record, list) and record}


def _applied(entries: Iterable[dict[str, Any]], namespace: str) -> tuple[list[AppliedObject], list[AppliedObject]]:
    """What a Kustomization of this namespace has applied: what the agent's lists show, and the rest."""
    read = [each for each in map(applied_of, entries) if each is not None]
    found = [each for each in read if (each.group, each.kind) != _NEVER_ASKED_FOR]
    is_listed = [each.namespace == namespace and (each.group, each.kind) in _LISTED_KINDS for each in found]
    return list(compress(found, is_listed)), list(compress(found, map(not_, is_listed)))


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(values: object) -> list[dict[str, Any]]:
    return [_object(each) for each in values] if isinstance(values, list) else []


def _time(value: object) -> datetime | None:
    """None for what is no time with a zone."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return time if time is not None and time.tzinfo is not None else None
