"""The part of the OpenAPI document that tells what receivers of notifications get: its ``webhooks``."""

from typing import Any

from edgewright.domain.notifications import Notification, NotificationType

REF = "#/components/schemas/{model}"
SUMMARIES = {
    NotificationType.JOINED: "An edge was heard for the first time on its hardware",
    NotificationType.UNAVAILABLE: "The lease of an edge has expired",
    NotificationType.RECOVERED: "An edge is heard again",
    NotificationType.BLOCKED: "A person has to act",
    NotificationType.CERTIFICATE_CHANGED: "Another sealing certificate is in use",
    NotificationType.DELETED: "A deletion has finished",
}
DESCRIPTION = "Signed as Standard Webhooks specifies it. docs/webhook.md has an example of each."
_HEADERS = {
    "webhook-id": "ID of the event; the same when it is sent again.",
    "webhook-timestamp": "When it is sent, in seconds since 1970.",
    "webhook-signature": "`v1,` and the HMAC-SHA-256 in base64.",
}


def schemas() -> dict[str, Any]:
    """The models of a notification."""
    definition = Notification.model_json_schema(ref_template=REF, mode="serialization")
    return {**definition.pop("$defs"), Notification.__name__: definition}


def webhooks() -> dict[str, Any]:
    """Each type of notification, as a request that the receiver gets."""
    return {kind.value: {"post": _operation(kind, summary)} for kind, summary in SUMMARIES.items()}


def _operation(kind: NotificationType, summary: str) -> dict[str, Any]:
    body = {"allOf": [{"$ref": REF.format(model=Notification.__name__)}, {"properties": {"type": {"const": kind}}}]}
    return {
        "operationId": kind.value.replace(".", "_"),
        "tags": ["webhook"],
        "summary": summary,
        "description": DESCRIPTION,
        "security": [],
        "parameters": [
            {"name": name, "in": "header", "required": True, "description": text, "schema": {"type": "string"}}
            for name, text in _HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            "2XX": {"description": "Taken."},
            "default": {"description": "Not taken: it is sent again."},
        },
    }
