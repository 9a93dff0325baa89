"""The *Edge cluster status* in the OpenAPI document: its JSON Schema, and what else the centre reads of it."""

from typing import Any

from edgewright.domain.default_entries import application_schema
from edgewright.domain.wellknown import APP_CLUSTER_STATUS

_CONDITION = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("type", "status", "reason", "message")},
}
_FLUX_OBJECT = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "kind": {"type": "string", "description": "Of `others`: `Kustomization` or `HelmRelease`."},
        "source": {"type": "string", "description": "Of a Kustomization: the source that it applies."},
        "chart": {"type": "string", "description": "Of a release: its chart."},
        "attempted": {"type": "string", "description": "The revision, or version of the chart, that was tried last."},
        "suspended": {"type": "boolean"},
        "conditions": {"type": "array", "items": _CONDITION},
    },
}
_MORE = {
    "observed_revision": {"type": "string", "description": "What Flux has applied, as it says it: `main@sha1:…`."},
    "flux": {
        "type": "object",
        "description": "What Flux says of its work; the conditions `Synced` and `Healthy` are read of it.",
        "properties": {
            "sources": {"type": "array", "items": _FLUX_OBJECT},
            "kustomizations": {"type": "array", "items": _FLUX_OBJECT},
            "releases": {
                "type": "array",
                "items": _FLUX_OBJECT,
                "description": "HelmReleases. Absent: the agent may not see them, or is of a version that does not.",
            },
            "others": {
                "type": "array",
                "items": _FLUX_OBJECT,
                "description": "What an operator has beside them and fails: Kustomizations and HelmReleases.",
            },
        },
    },
    "secrets": {
        "type": "object",
        "description": (
            "What the edge's controller has made of what the centre has sealed. A sealing is named by eight "
            "characters: the first six bytes of the SHA-256 of the JSON `[namespace, name, [[key, ciphertext], …]]`, "
            "without spaces and sorted by key, in base64url. Absent: the agent does not say."
        ),
        "properties": {
            "counts": {
                "type": "object",
                "properties": {stage: {"type": "integer"} for stage in ("opened", "pending", "refused")},
            },
            **{
                field: {"type": "string", "description": f"Names of sealings that {what}, one after the other."}
                for field, what in (
                    ("opened", "are opened"),
                    ("pending", "the controller has not come to"),
                    ("refused_too", "are refused, beside those in `refused`"),
                )
            },
            "refused": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {name: {"type": "string"} for name in ("namespace", "name", "digest", "message")},
                },
            },
        },
    },
    "missing": {
        "type": "array",
        "items": {"type": "string"},
        "description": (
            "What drives the edge and is not there, such as `GitRepository self-link`, `Secret flux-secrets` or "
            "`ConfigMap settings in line-1`. "
            "Absent: nothing, or the agent does not look for it. The first 20 count, as of the next two."
        ),
    },
    "unknown": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "what": {
                    "type": "string",
                    "description": "Resource, such as `kustomizations`, `secrets/NAME` or `configmaps in line-1`.",
                },
                "right": {"type": "string", "description": "What the agent lacks, in words."},
            },
        },
        "description": "What the agent may not see, or not change. Of that the rest of the status says nothing.",
    },
    "unopened": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "secret": {"type": "string", "description": "`NAMESPACE/NAME`."},
                "key": {"type": "string"},
                "sha256": {"type": "string", "description": "Of the ciphertext, base64 as in the file; hexadecimal."},
            },
        },
        "description": "Values that no key of the edge opens. Absent: not tried yet.",
    },
    "unopened_count": {"type": "integer", "description": "How many there are, if more than `unopened` names."},
    "versions": {
        "type": "object",
        "description": "Programs on the edge and their versions.",
        "additionalProperties": {"type": "string"},
    },
    "omitted": {
        "type": "object",
        "description": (
            "How much the agent has left out to stay below 64 KiB: `flux_messages` that it shortened, `host_details` "
            "(hosts of which it says no more than name, role and readiness), `secrets` of which it says no state, "
            "`namespaces`, `flux_objects` that are ready, `hosts`, `hosts_not_ready` among those. Absent: nothing."
        ),
        "additionalProperties": {"type": "integer"},
    },
}


def edge_status_schema() -> dict[str, Any]:
    """The schema of the component ``EdgeStatus``."""
    schema: dict[str, Any] = application_schema(APP_CLUSTER_STATUS)
    del schema["$schema"]
    # OpenAPI allows `true` for "anything" as JSON Schema does; generators of clients know only `{}`.
    host = schema["properties"]["hosts"]["items"]["properties"]
    host.update({name: {} for name, described in host.items() if described is True})
    return {**schema, "title": "EdgeStatus", "properties": {**schema["properties"], **_MORE}}
