"""Repositories that people push to and every edge reads."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from pydantic import ConfigDict
from starlette.responses import JSONResponse, Response

from api.auth import ClusterOperator, Reader, actor_of
from api.idempotency import as_json
from api.preconditions import precondition_of, quoted
from api.schemas.base import Answer
from edgewright.application.shared_repositories import SharedRepositories, SharedRepository
from edgewright.errors import NotFound
from edgewright.ports.git_server import GitServer

router = APIRouter(tags=["git"])


@dataclass(frozen=True)
class RepositoryRoom:
    """What the routes of shared repositories work with. ``url``: base of the centre's URLs."""

    repositories: SharedRepositories
    git: GitServer
    url: str


async def repository_room_of(request: Request) -> RepositoryRoom:
    """That of the application that serves this request. Not a plain function: those run in threads."""
    room: RepositoryRoom = request.app.state.repository_room
    return room


TheRepositoryRoom = Annotated[RepositoryRoom, Depends(repository_room_of)]


class RepositoryBody(Answer):
    """A shared repository.

    ``url``: where git and Flux find it. ``own``: people push to it; else the centre alone writes it. ``commit``: the
    newest one of `main`; null: nobody has pushed yet.
    """

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "name": "press-line",
                    "uuid": "0c2d5f8e-6a0b-5c3f-9f0d-3a9b2f6c1d77",
                    "url": "https://edge.example.com/git/shared/press-line",
                    "own": True,
                    "commit": "d854a4fd41f4f7ab04183e65b9a82be4441c1e60",
                    "made_at": "2026-03-01T12:00:00Z",
                }
            ]
        },
    )

    name: str
    uuid: UUID
    url: str
    own: bool
    commit: str | None
    made_at: datetime


class RepositoryList(Answer):
    items: list[RepositoryBody]


_NEW: dict[int | str, dict[str, Any]] = {201: {"description": "The repository is new.", "model": RepositoryBody}}


@router.get("/v1/repository", summary="List shared repositories")
async def list_repositories(*, _operator: Reader, room: TheRepositoryRoom) -> RepositoryList:
    """Those that every edge reads: `helm-charts`, and yours."""
    return RepositoryList(items=[await _body(room, each) for each in await room.repositories.all()])


@router.put(
    "/v1/repository/{repository}",
    summary="Make a shared repository",
    response_model=RepositoryBody,
    responses=_NEW,
)
async def make_repository(*, repository: str, operator: ClusterOperator, room: TheRepositoryRoom) -> Response:
    """An empty repository, to which tokens with `push` push and which every edge reads; 200 if it is there already.

    The same as writing a *Git repository configuration* with the path `shared/NAME`, whose revision is the `ETag`.

    409 `repository_name_taken`, `too_many_repositories`; 422 `name_invalid`: a name has at most 63 lower-case
    letters, digits and hyphens.
    """
    made, is_new = await room.repositories.make(repository, actor=actor_of(operator))
    return JSONResponse(as_json(await _body(room, made)), 201 if is_new else 200, {"ETag": quoted(made.etag)})


@router.delete("/v1/repository/{repository}", status_code=204, summary="Remove a shared repository")
async def remove_repository(
    *,
    repository: str,
    operator: ClusterOperator,
    request: Request,
    room: TheRepositoryRoom,
    ignore_by_hand: Annotated[bool, Query(description="Removes it even if files in `by-hand/` name it.")] = False,
) -> Response:
    """Archives it on the centre's disk, and serves it no more. Honours `If-Match`.

    409 `repository_in_use`: a template, the configuration of a cluster, or a file in `by-hand/` of one names it. 409
    `repository_use_unknown`: not every `by-hand/` could be searched. `ignore_by_hand` removes it without that search.
    """
    await room.repositories.remove_named(
        repository,
        actor=actor_of(operator),
        precondition=precondition_of(request),
        ignores_by_hand=ignore_by_hand,
    )
    return Response(status_code=204)


async def _body(room: RepositoryRoom, repository: SharedRepository) -> RepositoryBody:
    commit = None
    with suppress(NotFound):
        commit = await asyncio.to_thread(room.git.head, repository.uuid)
    return RepositoryBody(
        name=repository.name,
        uuid=repository.uuid,
        url=f"{room.url}/git/{repository.path}",
        own=repository.is_own,
        commit=commit,
        made_at=repository.made_at,
    )
