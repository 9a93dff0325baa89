"""The headers of requests and answers, as the OpenAPI document declares them.

Handlers read these headers themselves. Which of them one honours, its description says; a test holds both together.
"""

from typing import Any

TEXT = {"type": "string"}
REQUEST_HEADERS = {
    "If-Match": "The write happens only if the entry has one of these revisions (`ETag`), or any with `*`.",
    "If-None-Match": "Only if the entry has none of these revisions (`ETag`); `*`: only if there is no entry.",
    "Idempotency-Key": "The same key gets the first answer, for 24 h; at most 255 printable characters.",
}
REQUEST_ID = {"description": "Names this request in the log of the gateway.", "schema": TEXT}
ETAG = {"description": "The revision of the entry.", "schema": TEXT}
RETRY_AFTER = {"description": "Seconds after which another try makes sense; there when one does.", "schema": TEXT}


def declare_headers(operation: dict[str, Any]) -> None:
    """Adds the headers that an operation honours, and those of its answers."""
    honoured = [name for name in REQUEST_HEADERS if f"`{name}`" in operation.get("description", "")]
    parameters = [
        {"name": name, "in": "header", "required": False, "schema": TEXT, "description": REQUEST_HEADERS[name]}
        for name in honoured
    ]
    if parameters:
        operation["parameters"] = [*operation.get("parameters", ()), *parameters]
    revised = any(name.startswith("If-") for name in honoured)
    for status, answer in operation["responses"].items():
        headers = answer.setdefault("headers", {})
        headers["X-Request-Id"] = REQUEST_ID
        if revised and status[0] in "23":
            headers["ETag"] = ETAG
        if status in {"429", "503", "default"}:
            headers["Retry-After"] = RETRY_AFTER
