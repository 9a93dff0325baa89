"""The headers of requests and answers, as the OpenAPI document declares them.

Handlers read these headers themselves. Which of them one honours, its description says; a test holds both together.
"""

from typing import Any

TEXT = {"type": "string"}
REQUEST_HEADERS = {
    "If-Match": "Write only if the entry has one of these revisions (`ETag`), or any revision with `*`.",
    "If-None-Match": "Act only if the entry has none of these revisions (`ETag`); `*`: only if there is no entry.",
    "Idempotency-Key": "The same key gets the first answer again, for 24 h; at most 255 printable characters.",
}
REQUEST_ID = {"description": "Names this request in the log of the gateway.", "schema": TEXT}
ANSWER_HEADERS = {
    "ETag": "The revision of the entry.",
    "Location": "The path of what was created.",
    "Edgewright-Commit": "The commit that has it.",
    "Edgewright-Warning": "What prevents the change from arriving on the edge.",
    "Edgewright-Status-Digest": "Of the status as it was taken, for the next heartbeat.",
}
PROBLEM_HEADERS = {
    "Retry-After": (
        {"429", "503", "default"},
        "Seconds after which to try again; present if trying again makes sense.",
    ),
    "WWW-Authenticate": ({"401", "default"}, "With 401: how to send credentials."),
    "Allow": ({"405", "default"}, "With 405: the methods that there are."),
}
"""By name: which answers bear it, and what it says."""


def declared(*names: str) -> dict[str, Any]:
    """Headers of problems, for an answer that bears them with a status of its own."""
    return {name: _described(PROBLEM_HEADERS[name][1]) for name in names}


def declare_headers(operation: dict[str, Any]) -> None:
    """Adds the headers that an operation honours, and those of its answers."""
    honoured = [name for name in REQUEST_HEADERS if f"`{name}`" in operation.get("description", "")]
    parameters = [
        {"name": name, "in": "header", "required": False, "schema": TEXT, "description": REQUEST_HEADERS[name]}
        for name in honoured
    ]
    if parameters:
        operation["parameters"] = [*operation.get("parameters", ()), *parameters]
    named = [name for name in ANSWER_HEADERS if f"`{name}`" in operation.get("description", "")]
    if any(name.startswith("If-") for name in honoured):
        named.append("ETag")
    for status, answer in operation["responses"].items():
        headers = answer.setdefault("headers", {})
        headers["X-Request-Id"] = REQUEST_ID
        if status[0] in "23":
            names = [*named, "ETag"] if _is_cluster(answer) else named
            headers |= {name: _described(ANSWER_HEADERS[name]) for name in names}
        if "Idempotency-Key" in honoured and status[0] == "2":
            headers["Idempotency-Replayed"] = _described("`true`: this is the answer to an earlier request.")
        headers |= {
            name: _described(text) for name, (statuses, text) in PROBLEM_HEADERS.items() if status in statuses
        }


def _is_cluster(answer: dict[str, Any]) -> bool:
    """Whoever shows a cluster names the revision of its configuration."""
    schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
    return bool(schema.get("$ref", "").endswith("/ClusterBody"))


def _described(text: str) -> dict[str, Any]:
    return {"description": text, "schema": TEXT}
