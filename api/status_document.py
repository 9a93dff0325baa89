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
        "source": {"type": "string", "description": "Of a Kustomization: the source that it applies."},
        "suspended": {"type": "boolean"},
        "conditions": {"type": "array", "items": _CONDITION},
    },
}
_MORE = {
    "observed_revision": {"type": "string", "description": "What Flux has applied, as it says it: `main@sha1:…`."},
    "flux": {
        "type": "object",
        "description": "What Flux says of its work; why a commit does not arrive is read of it.",
        "properties": {
            "sources": {"type": "array", "items": _FLUX_OBJECT},
            "kustomizations": {"type": "array", "items": _FLUX_OBJECT},
        },
    },
    "versions": {
        "type": "object",
        "description": "Programs on the edge and their versions.",
        "additionalProperties": {"type": "string"},
    },
    "omitted": {
        "type": "object",
        "description": (
            "How much the agent has left out to stay below 64 KiB: `flux_messages` that it shortened, `host_details` "
            "(hosts of which it says no more than name, role and readiness), `flux_objects`, `namespaces`, "
            " `hosts`, and `hosts_not_ready` among those. Absent: nothing."
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
