"""The OpenAPI document: what FastAPI derives, completed with what it cannot see.

Bodies and doors are dependencies of ours (``JsonBody``, ``Needs``, ``FromAgent``, …); their models, schemes and
permissions are read off the routes here.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeGuard

from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from api import admission, auth, edge_sessions, git_callers
from api.agent_callers import FromAgent
from api.bodies import JsonBody
from api.document_headers import declare_headers
from api.problem_document import PROBLEM_TYPE, Problem
from edgewright import __version__
from edgewright.domain.edge_status import status_schema
from edgewright.domain.notifications import Notification, NotificationType

REF = "#/components/schemas/{model}"
TAGS = [
    {"name": "health", "description": "Whether the gateway is alive and can work."},
    {"name": "clusters", "description": "Create, list, show, change, delete and recreate clusters."},
    {
        "name": "verbs",
        "description": "Steer a cluster: accept its edge, rotate its credentials, pause it, retry its steps.",
    },
    {"name": "progress", "description": "See how far clusters are, and what happened to them."},
    {
        "name": "bootstrap",
        "description": "Attach a Kubernetes cluster: the bootstrap line, the script and what it fetches.",
    },
    {
        "name": "flux",
        "description": "The Flux that edges get: the program that applies a Git repository to a cluster.",
    },
    {
        "name": "upgrades",
        "description": "Bring Flux and the agent on an edge to a newer version, and see how far that is.",
    },
    {"name": "agent", "description": "What the agent on an edge reports, and what the centre answers."},
    {
        "name": "secrets",
        "description": "Set and list secrets. Each is sealed here for one cluster, and never read back.",
    },
    {"name": "charts", "description": "Charts that edges get, and the Helm chart templates that clusters name."},
    {"name": "git", "description": "Driving and shared repositories over Git's smart HTTP protocol."},
    {
        "name": "config store",
        "description": "Versioned JSON documents, as clients of ACS (the AMRC Connectivity Stack) use them.",
    },
    {"name": "tokens", "description": "Make, list and revoke operator tokens."},
    {"name": "webhook", "description": "Where signed notifications about clusters go."},
]
DESCRIPTION = """\
Commissions edge Kubernetes clusters and keeps them for life.

Errors are problem documents (RFC 9457) with a stable `code`; every answer carries `X-Request-Id`. An operator token
is sent as `Authorization: Bearer`, or as the password of HTTP Basic, so that plain git works.

A query parameter that a path under `/v1/` does not list is refused with 422 `query_unknown`. Paths of the Config
Store, and those that edges and Git use, pass over what they do not know.

The gateway is also a registry with one repository, from which nodes pull the agent's image: `/v2/`, as the OCI
distribution specification describes it.

Every path that answers GET answers HEAD too, with the same headers; HEAD is not listed as an operation of its own.
"""
SERVERS: list[dict[str, str | Any]] = [{"url": "/", "description": "The gateway that serves this document."}]
LICENSE: dict[str, str | Any] = {"name": "Apache License 2.0", "identifier": "Apache-2.0"}
SCHEMES = {
    "operatorBearer": {"type": "http", "scheme": "bearer", "description": "An operator token, `ew_…`."},
    "operatorBasic": {"type": "http", "scheme": "basic", "description": "Any user; the operator token as password."},
    "clusterBasic": {
        "type": "http",
        "scheme": "basic",
        "description": "User: the cluster's UUID; password: its agent credential `ewa_…` or flux credential `ewf_…`.",
    },
    "registrationBearer": {"type": "http", "scheme": "bearer", "description": "A registration token, `ewr_…`."},
}
NOTIFICATION_SUMMARIES = {
    NotificationType.JOINED: "An edge has called for the first time on its hardware",
    NotificationType.UNAVAILABLE: "The lease of an edge has expired",
    NotificationType.RECOVERED: "An edge calls again",
    NotificationType.BLOCKED: "A person has to act",
    NotificationType.CERTIFICATE_CHANGED: "Another sealing certificate is in use",
    NotificationType.DELETED: "A deletion has finished",
}
"""Summaries of the document's ``webhooks``: what receivers of notifications get."""
_NOTIFICATION_DESCRIPTION = "Signed as Standard Webhooks specifies it. docs/webhook.md has an example of each."
_NOTIFICATION_HEADERS = {
    "webhook-id": "ID of the event; the same when it is sent again.",
    "webhook-timestamp": "When it is sent, in seconds since 1970.",
    "webhook-signature": "`v1,` and the HMAC-SHA-256 in base64.",
}
_MAY_HAVE_ENDED = re.compile(r"/v1/cluster/\{uuid\}(?!/(timeline|bootstrap)$)|/uuid/\{uuid\}/")
_CHANGES_OF_ENTRIES = re.compile(r"(PUT|PATCH|DELETE) /v[12]/app/\{app\}/object/\{object_uuid\}")
_ENDED = "The cluster was deleted: `ended_at` says when, `timeline` where to read what happened to it."
_UNKNOWN = "There is no such cluster, or not the part of it that is named; `code` says which."
_UNFIT = "The body is not what this takes; `where` names the field, `hint` says what to send."
_OTHER = "Any other refusal or failure, as a problem document."
_ANY_CALLER = {auth.identify, edge_sessions.identify_for_store, git_callers.identify_for_git}
_OPERATOR: list[dict[str, list[str]]] = [{"operatorBearer": []}, {"operatorBasic": []}]
_CLUSTER: list[dict[str, list[str]]] = [{"clusterBasic": []}]


def document(routers: Sequence[APIRouter]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of the routers' routes."""
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    described = get_openapi(
        title="Edgewright",
        version=__version__,
        openapi_version="3.1.0",
        description=DESCRIPTION,
        routes=routes,
        tags=TAGS,
        servers=SERVERS,
        license_info=LICENSE,
    )
    models = {found.model for route in routes for found in _bodies(route)}
    # Answers too: FastAPI leaves null out of their examples.
    answers: set[type[BaseModel]] = {model for route in routes if _is_model(model := route.response_model)}
    answers.add(Problem)
    wanted: list[tuple[type[BaseModel], Literal["validation", "serialization"]]] = [
        (model, "serialization") for model in sorted(answers, key=lambda each: each.__name__)
    ]
    wanted += [(model, "validation") for model in sorted(models, key=lambda each: str(each.__name__))]
    _, definitions = models_json_schema(wanted, ref_template=REF)
    components = described.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas.update(definitions.get("$defs", {}))
    schemas.update(_notification_schemas())
    schemas["EdgeStatus"] = status_schema()
    schemas["Event"]["properties"]["kind"] = {
        "$ref": REF.format(model="EventKind")
    }  # others: as its description says
    for held in (held for schema in schemas.values() for held in schema.get("properties", {}).values()):
        if "$ref" in held:
            held.pop("title", None)  # what is named there has its own
    described["webhooks"] = _notification_webhooks()
    for gone in ("HTTPValidationError", "ValidationError"):
        schemas.pop(gone, None)
    for name, example in _examples()["models"].items():
        schemas[name].setdefault("examples", [example])
    components["schemas"] = dict(sorted(schemas.items()))
    components["examples"] = _problem_examples()
    components["securitySchemes"] = SCHEMES
    for route in routes:
        if route.include_in_schema:
            for method in route.methods or ():
                _complete(described["paths"][route.path_format][method.lower()], route, method)
    return described


def _notification_schemas() -> dict[str, Any]:
    """The models of a notification."""
    definition = Notification.model_json_schema(ref_template=REF, mode="serialization")
    return {**definition.pop("$defs"), Notification.__name__: definition}


def _notification_webhooks() -> dict[str, Any]:
    """Each type of notification, as a request that the receiver gets."""
    return {
        kind.value: {"post": _notification_operation(kind, summary)}
        for kind, summary in NOTIFICATION_SUMMARIES.items()
    }


def _notification_operation(kind: NotificationType, summary: str) -> dict[str, Any]:
    body = {"allOf": [{"$ref": REF.format(model=Notification.__name__)}, {"properties": {"type": {"const": kind}}}]}
    return {
        "operationId": kind.value.replace(".", "_"),
        "tags": ["webhook"],
        "summary": summary,
        "description": _NOTIFICATION_DESCRIPTION,
        "security": [],
        "parameters": [
            {"name": name, "in": "header", "required": True, "description": text, "schema": {"type": "string"}}
            for name, text in _NOTIFICATION_HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            "2XX": {"description": "Taken."},
            "default": {"description": "Not taken: it is sent again."},
        },
    }


def _complete(operation: dict[str, Any], route: APIRoute, method: str) -> None:
    operation["operationId"] = _operation_name(route)
    for body in _bodies(route):
        operation["requestBody"] = {
            "required": not body.optional,
            "content": {"application/json": {"schema": {"$ref": REF.format(model=body.model.__name__)}}},
        }
    security, permission = _door(route)
    operation["security"] = security
    if permission:
        operation["x-permission"] = permission
    responses = operation["responses"]
    responses.pop("422", None)
    problem = {"schema": {"$ref": REF.format(model="Problem")}}
    for status, answer in responses.items():
        if status[0] in "45" and "content" not in answer:
            answer["content"] = {PROBLEM_TYPE: problem}
    if security:
        responses.setdefault("401", {"description": "No or wrong credentials.", "content": {PROBLEM_TYPE: problem}})
        responses.setdefault("403", {"description": "Known, but not allowed.", "content": {PROBLEM_TYPE: problem}})
    if _MAY_HAVE_ENDED.match(route.path_format) or _CHANGES_OF_ENTRIES.match(f"{method} {route.path_format}"):
        responses["410"] = {"description": _ENDED, "content": {PROBLEM_TYPE: problem}}
    if route.path_format.startswith("/v1/cluster/{uuid}") and PROBLEM_TYPE in responses.get("401", {}).get(
        "content", {}
    ):
        responses.setdefault("404", {"description": _UNKNOWN, "content": {PROBLEM_TYPE: problem}})
    if "application/json" in operation.get("requestBody", {}).get("content", {}):
        responses.setdefault("422", {"description": _UNFIT, "content": {PROBLEM_TYPE: problem}})
    responses["default"] = {"description": _OTHER, "content": {PROBLEM_TYPE: problem}}
    _show_examples(operation)
    declare_headers(operation)


@cache
def _examples() -> dict[str, Any]:
    """Examples by model and by operation, and of problems by status."""
    content: dict[str, Any] = json.loads((files("api") / "document_examples.json").read_text("utf-8"))
    return content


def _problem_examples() -> dict[str, Any]:
    """Every problem that is shown, by the name under which operations refer to it."""
    problems = {**_examples()["problems"], **_examples()["problems_of_operations"]}
    return {_problem_name(key): {"summary": said["title"], "value": said} for key, said in problems.items()}


def _problem_name(key: str) -> str:
    return f"Problem_{key.replace(' ', '_')}"


def _show_examples(operation: dict[str, Any]) -> None:
    """Gives each answer its example: that of its operation, or of its status; a model brings its own."""
    examples, name = _examples(), operation["operationId"]
    for status, answer in operation["responses"].items():
        content = answer.get("content", {})
        if PROBLEM_TYPE in content:
            key = f"{name} {status}" if f"{name} {status}" in examples["problems_of_operations"] else status
            shown = {"problem": {"$ref": f"#/components/examples/{_problem_name(key)}"}}
            content[PROBLEM_TYPE] = {**content[PROBLEM_TYPE], "examples": shown}
        elif (
            "application/json" in content
            and (said := examples["operations"].get(name.removesuffix("_v2"))) is not None
        ):
            content["application/json"]["example"] = said


def _operation_name(route: APIRoute) -> str:
    """What generated clients call the operation: the route's name; with a suffix where /v2 repeats what /v1 has."""
    return f"{route.name}_v2" if route.path_format.startswith("/v2/") else route.name


def _is_model(annotation: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _door(route: APIRoute) -> tuple[list[dict[str, list[str]]], str | None]:
    """The security requirements of a route, and the permission that an operator needs."""
    calls = list(_calls(route.dependant))
    for call in calls:
        if isinstance(call, auth.Needs):
            return _OPERATOR, call.permission.value
    if admission.registration_door in calls:
        return [{"registrationBearer": []}], None
    if admission.installer_door in calls:
        return [{"registrationBearer": []}, *_CLUSTER, *_OPERATOR], None
    if any(isinstance(call, FromAgent) for call in calls):
        return _CLUSTER, None
    if not _ANY_CALLER.isdisjoint(calls):
        return [*_OPERATOR, *_CLUSTER], None
    return [], None


def _bodies(route: APIRoute) -> Iterator[JsonBody[Any]]:
    for call in _calls(route.dependant):
        body = call.body if isinstance(call, FromAgent) else call
        if isinstance(body, JsonBody):
            yield body


def _calls(dependant: Dependant) -> Iterator[Any]:
    for dependency in dependant.dependencies:
        yield dependency.call
        yield from _calls(dependency)
