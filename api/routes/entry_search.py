"""Searching entries and finding services, as ACS clients do."""

import json
from collections.abc import Collection
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request

from api.auth import Reader
from api.edge_sessions import KnownToStore
from api.gateway import Gateway
from api.known_names import known_application, known_class
from api.live import TheGateway
from api.schemas.config_store import ServiceBody
from edgewright.domain.entry_query import ABSENT, Absent, EntryQuery, Scalar, path_of, value_at
from edgewright.domain.wellknown import (
    SERVICE_CLUSTER_MANAGER,
    SERVICE_CONFIG_STORE,
    SERVICE_DIRECTORY,
    SERVICE_GIT,
)
from edgewright.errors import Invalid, NotFound

PAGE = 200
MOST_TERMS = 32
SERVICES = frozenset({SERVICE_CLUSTER_MANAGER, SERVICE_CONFIG_STORE, SERVICE_DIRECTORY, SERVICE_GIT})
"""All that ACS clients find here; they all live at the same URL."""
NOTHING = "undefined"
"""How clients in JavaScript write that nothing may stand at a path."""

router = APIRouter(tags=["config store"])


@router.get("/v1/app/{app}/search", summary="Search entries", response_model=list[Any])
@router.get("/v2/app/{app}/search", summary="Search entries", response_model=list[Any])
async def search(app: UUID, _operator: Reader, request: Request, gateway: TheGateway) -> list[Any]:
    """Each parameter is a path into the entry, such as `flux.version`, and the JSON value that has to stand there.

    Answers with the UUIDs of the objects, sorted. Parameters called `@name` make each an object: its `uuid`, and
    for each `name` what stands at the path that the parameter says.
    """
    return await _found(gateway, await known_application(gateway, app), _query(request), None)


@router.get("/v1/app/{app}/class/{klass}/search", summary="Search entries of a class", response_model=list[Any])
@router.get("/v2/app/{app}/class/{klass}/search", summary="Search entries of a class", response_model=list[Any])
async def search_class(app: UUID, klass: UUID, _operator: Reader, request: Request, gateway: TheGateway) -> list[Any]:
    """Likewise, of the members of one class only."""
    members = frozenset(await gateway.config.members(await known_class(gateway, klass)))
    return await _found(gateway, await known_application(gateway, app), _query(request), members)


@router.get("/v1/service/{service_uuid}", summary="Where a service of ACS is")
async def find_service(service_uuid: UUID, _caller: KnownToStore, gateway: TheGateway) -> list[ServiceBody]:
    """The one record of a service that this gateway stands in for; 404 for any other."""
    if service_uuid not in SERVICES:
        raise NotFound(f"There is no service {service_uuid} here.", code="service_unknown")
    return [ServiceBody(url=gateway.external_url)]


async def _found(gateway: Gateway, app: UUID, query: EntryQuery, members: Collection[UUID] | None) -> list[Any]:
    found: list[Any] = []
    after: UUID | None = None
    while page := await gateway.config.bodies(app, after=after, limit=PAGE):
        for object_, body in page:
            if (members is None or object_ in members) and query.matches(body):
                found.append(_result(object_, body, query))
        after = page[-1][0]
    return found


def _result(object_: UUID, body: Any, query: EntryQuery) -> Any:
    if query.results is None:
        return object_
    read = {name: value_at(body, path) for name, path in query.results.items()}
    return {**{name: None if value is ABSENT else value for name, value in read.items()}, "uuid": object_}


def _query(request: Request) -> EntryQuery:
    terms = request.query_params.multi_items()
    if len(terms) > MOST_TERMS:
        raise Invalid(f"A search has at most {MOST_TERMS} terms.", code="request_invalid", where="query")
    wanted = [(path_of(name), _value(text)) for name, text in terms if not name.startswith("@")]
    results = {name.removeprefix("@"): path_of(text) for name, text in terms if name.startswith("@")}
    return EntryQuery(wanted, results or None)


def _value(text: str) -> Scalar | Absent:
    if text == NOTHING:
        return ABSENT
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = [text]
    if isinstance(value, dict | list):
        raise Invalid(
            "A search compares strings, numbers, true, false and null, written as JSON.",
            code="request_invalid",
            where="query",
        )
    scalar: Scalar = value
    return scalar
