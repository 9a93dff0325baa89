"""Searching entries and finding services, as ACS clients do."""

import asyncio
import json
from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request, Response

from api.auth import Reader, asker
from api.config_writes import TheStoreRoom
from api.dependencies import TheOffer
from api.edge_sessions import KnownToStore
from api.known_names import NamedApplication, known_application, known_class
from api.schemas.config_store import ServiceBody
from edgewright.domain.entry_query import ABSENT, Absent, EntryQuery, Scalar, path_of, value_at
from edgewright.domain.wellknown import (
    SERVICE_CLUSTER_MANAGER,
    SERVICE_CONFIG_STORE,
    SERVICE_DIRECTORY,
    SERVICE_GIT,
)
from edgewright.errors import Invalid, NotFound, TooLarge
from edgewright.ports.config_store import ConfigStore

PAGE = 32
"""Entries in memory at a time; each has at most 1 MiB."""
MOST_FOUND = 8 * 1024 * 1024
"""Most bytes of an answer."""
MOST_TERMS = 32
SERVICES = frozenset({SERVICE_CLUSTER_MANAGER, SERVICE_CONFIG_STORE, SERVICE_DIRECTORY, SERVICE_GIT})
"""The services that ACS clients find here, all at the same URL."""
NOTHING = "undefined"
"""What JavaScript clients send if a path must have no value."""

router = APIRouter(tags=["config store"])


@router.get("/v1/app/{app}/search", summary="Search entries", response_model=list[Any])
@router.get("/v2/app/{app}/search", summary="Search entries", response_model=list[Any])
async def search(operator: Reader, app: NamedApplication, request: Request, room: TheStoreRoom) -> Response:
    """Each parameter is a path into the entry, such as `flux.version`, and the JSON value that it must have.

    Returns the UUIDs of the objects, sorted. With parameters called `@name`, each result is an object instead: its
    `uuid` and, for each `name`, the value at the path in that parameter.
    """
    query = _query(request)
    async with room.searches.turn(asker(operator)):
        return await _found(room.config, await known_application(room.config, app), query, None)


@router.get("/v1/app/{app}/class/{klass}/search", summary="Search entries of a class", response_model=list[Any])
@router.get("/v2/app/{app}/class/{klass}/search", summary="Search entries of a class", response_model=list[Any])
async def search_class(
    *, operator: Reader, app: NamedApplication, klass: UUID, request: Request, room: TheStoreRoom
) -> Response:
    """Searches like the route for all objects, but only among the members of one class."""
    query = _query(request)
    async with room.searches.turn(asker(operator)):
        members = frozenset(await room.config.members(await known_class(room.config, klass)))
        return await _found(room.config, await known_application(room.config, app), query, members)


@router.get("/v1/service/{service_uuid}", summary="Where a service of ACS is")
async def find_service(service_uuid: UUID, _caller: KnownToStore, offer: TheOffer) -> list[ServiceBody]:
    """Returns the one record of a service that this gateway provides; 404 for any other."""
    if service_uuid not in SERVICES:
        raise NotFound(
            f"There is no service {service_uuid} here.",
            code="service_unknown",
            hint="A gateway provides cluster manager, Config Store, directory and Git.",
        )
    return [ServiceBody(url=offer.external_url)]


async def _found(config: ConfigStore, app: UUID, query: EntryQuery, members: Collection[UUID] | None) -> Response:
    found: list[bytes] = []
    size = 0
    after: UUID | None = None
    while page := await config.bodies(app, after=after, limit=PAGE):
        matching = await asyncio.to_thread(_matching, page, query, members)
        size += sum(map(len, matching))
        if size > MOST_FOUND:
            raise TooLarge(
                f"What was found is more than {MOST_FOUND} bytes.",
                code="search_too_large",
                hint="Search for less, or read fewer values of each entry.",
            )
        found += matching
        after = page[-1][0]
    return Response(b"[" + b",".join(found) + b"]", media_type="application/json")


def _matching(page: Sequence[tuple[UUID, str]], query: EntryQuery, members: Collection[UUID] | None) -> list[bytes]:
    """Returns the results of a page as JSON. Run it in a thread: it is too slow for the event loop."""
    bodies = ((object_, json.loads(text)) for object_, text in page if members is None or object_ in members)
    return [
        json.dumps(_result(object_, body, query), ensure_ascii=False, separators=(",", ":")).encode()
        for object_, body in bodies
        if query.matches(body)
    ]


def _result(object_: UUID, body: Any, query: EntryQuery) -> Any:
    if query.results is None:
        return str(object_)
    read = {name: value_at(body, path) for name, path in query.results.items()}
    return {**{name: None if value is ABSENT else value for name, value in read.items()}, "uuid": str(object_)}


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
