"""Driving and shared repositories over Git's smart HTTP protocol."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

import structlog
from fastapi import APIRouter
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from api.auth import actor_of, asker, require, require_active
from api.bodies import bounded_stream
from api.git_callers import GitCall, GitCaller, GitRoom, KnownToGit
from api.git_guests import GitGuests
from edgewright.adapters.git.http_backend import GitAnswer
from edgewright.adapters.git.http_push import ANY_PATH, PushContext, Pushed
from edgewright.adapters.git.turns import Guest
from edgewright.application.lookup import refuse_deleted
from edgewright.application.secret_namespaces import reserved_namespaces
from edgewright.application.shared_repositories import CHARTS, SharedRepository
from edgewright.bootstrap import installed_objects
from edgewright.domain.cluster import Desired, Role
from edgewright.domain.events import EventKind
from edgewright.domain.kubernetes_names import EDGEWRIGHT_NAMESPACE
from edgewright.domain.own_objects import EDGEWRIGHT, NOTHING, OwnObjects
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.errors import Conflict, EdgewrightError, Forbidden, NotFound
from edgewright.ports.audit import NewEvent
from edgewright.ports.operators import OperatorToken, Permission

RECEIVE = "git-receive-pack"

REQUEST_LIMIT = 1024 * 1024 * 1024
"""Most bytes of a request; pushes and fetches have smaller limits."""
FETCH_LIMIT = 4 * 1024 * 1024
"""Most bytes of a fetch's request as received; it lists the commits that the client has."""
EVENT_ATTEMPTS = 3

router = APIRouter(tags=["git"])
_log = structlog.get_logger("edgewright.api")

_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"description": "Git's own protocol.", "content": {"application/x-git-*": {}}}
}
_TEXT = {"anyOf": [{"type": "string"}, {"type": "null"}]}
_SERVICES = "`git-upload-pack` or `git-receive-pack`."
_ASKS = {
    "parameters": [
        {
            "name": "service",
            "in": "query",
            "required": False,
            "schema": {**_TEXT, "description": _SERVICES, "title": "Service"},
            "description": _SERVICES,
        },
        {"name": "git-protocol", "in": "header", "required": False, "schema": {**_TEXT, "title": "Git-Protocol"}},
    ]
}
"""The parameter of a request for refs. It is only documented here: parsing it would take FastAPI longer than the rest
of a poll."""
_REQUEST = {"requestBody": {"required": True, "content": {"application/x-git-*": {"schema": {"type": "string"}}}}}

Asked = UUID | SharedRepository | None
"""The repository that a request names; None: there is none with that name."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A repository that the caller may use. ``shared``: set if it is a shared repository that people push to."""

    uuid: UUID
    shared: SharedRepository | None = None


@router.get(
    "/git/cluster/{name}/info/refs",
    summary="A cluster's refs",
    response_class=Response,
    responses=_ANSWER,
    openapi_extra=_ASKS,
)
async def cluster_refs(name: str, call: KnownToGit) -> Response:
    """By the cluster's name, with or without `.git`."""
    return await _refs(call, await _cluster_named(call, name))


@router.post(
    "/git/cluster/{name}/{service}",
    summary="Fetch from or push to a cluster's repository",
    response_class=StreamingResponse,
    responses=_ANSWER,
    openapi_extra=_REQUEST,
)
async def cluster_service(name: str, service: str, call: KnownToGit) -> Response:
    """By the cluster's name, with or without `.git`."""
    return await _rpc(call, await _cluster_named(call, name), service)


@router.get(
    "/git/shared/{name}/info/refs",
    summary="A shared repository's refs",
    response_class=Response,
    responses=_ANSWER,
    openapi_extra=_ASKS,
)
async def shared_refs(name: str, call: KnownToGit) -> Response:
    """For repositories that every cluster reads: `helm-charts` and your own."""
    return await _refs(call, await _shared_named(call, name))


@router.post(
    "/git/shared/{name}/{service}",
    summary="Fetch from or push to a shared repository",
    response_class=StreamingResponse,
    responses=_ANSWER,
    openapi_extra=_REQUEST,
)
async def shared_service(name: str, service: str, call: KnownToGit) -> Response:
    """For repositories that every cluster reads: `helm-charts` and your own. You can only push to your own."""
    return await _rpc(call, await _shared_named(call, name), service)


@router.get(
    "/uuid/{uuid}/info/refs",
    summary="A repository's refs",
    response_class=Response,
    responses=_ANSWER,
    openapi_extra=_ASKS,
)
async def uuid_refs(uuid: UUID, call: KnownToGit) -> Response:
    """By the repository's UUID, which for a driving repository is the cluster's."""
    return await _refs(call, uuid)


@router.post(
    "/uuid/{uuid}/{service}",
    summary="Fetch from or push to a repository",
    response_class=StreamingResponse,
    responses=_ANSWER,
    openapi_extra=_REQUEST,
)
async def uuid_service(uuid: UUID, service: str, call: KnownToGit) -> Response:
    """By the repository's UUID, which for a driving repository is the cluster's."""
    return await _rpc(call, uuid, service)


async def _refs(call: GitCall, asked: Asked) -> Response:
    service = call.request.query_params.get("service")
    admitted = await _admit(call.room, call.caller, asked, pushes=service == RECEIVE)
    answer = await call.room.git_http.info_refs(
        admitted.uuid, service, guest=_guest(call.caller), git_protocol=call.request.headers.get("git-protocol")
    )
    return Response(answer.body, headers=dict(answer.headers))


async def _rpc(call: GitCall, asked: Asked, service: str) -> Response:
    caller, request, room = call.caller, call.request, call.room
    admitted = await _admit(room, caller, asked, pushes=service == RECEIVE)
    push = None
    if service == RECEIVE and isinstance(caller, OperatorToken):
        push = await _push(room, admitted, actor_of(caller))
    with ExitStack() as visit:
        visit.enter_context(_visit(room.git_guests, caller))
        answer = await room.git_http.rpc(
            admitted.uuid,
            service,
            bounded_stream(request, REQUEST_LIMIT if push else FETCH_LIMIT),
            guest=_guest(caller),
            media_type=request.headers.get("content-type"),
            content_encoding=request.headers.get("content-encoding"),
            git_protocol=request.headers.get("git-protocol"),
            push=push,
        )
        return _AnswerToGuest(answer, visit.pop_all())


def _visit(guests: GitGuests, caller: GitCaller) -> AbstractContextManager[None]:
    return (
        guests.of_operator(asker(caller)) if isinstance(caller, OperatorToken) else guests.of_cluster(caller.cluster)
    )


def _guest(caller: GitCaller) -> Guest:
    if isinstance(caller, OperatorToken):
        return Guest(asker(caller), is_edge=False)
    return Guest(caller.cluster, is_edge=True)


async def _admit(room: GitRoom, caller: GitCaller, asked: Asked, *, pushes: bool) -> Admitted:
    """Returns the repository, if the caller may read it or push to it.

    Edges poll their own repository and the charts all the time, so these need no look-up.

    Raises:
        Forbidden: the caller may not; clusters also get this answer for repositories that do not exist.
        NotFound: code ``repository_unknown``.
        Gone: code ``cluster_deleted``.
        Conflict: code ``deleting``: a push would bring back what the deletion has just removed.
    """
    if isinstance(caller, OperatorToken):
        require(caller, Permission.PUSH if pushes else Permission.READ)
        if asked == REPOSITORY_HELM_CHARTS and pushes:
            raise Forbidden(
                "The centre writes shared/helm-charts; nobody pushes to it with Git.",
                hint="To push a chart of your own, use: edgewright chart push FOLDER.",
            )
        return await _found(room, asked, pushes=pushes)
    if caller.credential.role is Role.FLUX and not pushes:
        if asked in (caller.cluster, REPOSITORY_HELM_CHARTS) and isinstance(asked, UUID):
            require_active(caller)
            return Admitted(asked)
        shared = await room.repositories.find(asked) if isinstance(asked, UUID) else asked
        if shared is not None:
            require_active(caller)
            return Admitted(shared.uuid, shared)
    raise Forbidden(
        "A cluster's flux credential reads its own repository and the shared ones, no other.",
        hint="`edgewright repository list` shows the shared ones; one that was removed is refused as well.",
    )


async def _found(room: GitRoom, asked: Asked, *, pushes: bool) -> Admitted:
    """Returns the repository for an operator; raises like ``_admit``."""
    if isinstance(asked, SharedRepository):
        return Admitted(asked.uuid, asked)
    if asked == REPOSITORY_HELM_CHARTS:
        return Admitted(asked)
    row = None if asked is None else await room.directory.get(asked)
    if row is not None:
        refuse_deleted(row)
        if pushes and row.desired is Desired.DELETED:
            raise Conflict(
                "The cluster is being deleted and takes no more pushes.",
                code="deleting",
                hint="`edgewright cluster undelete NAME` cancels a deletion that has not begun yet.",
            )
        return Admitted(row.uuid)
    shared = None if asked is None else await room.repositories.find(asked)
    if shared is None:
        raise NotFound(
            "There is no such repository.",
            code="repository_unknown",
            hint="`edgewright cluster show NAME` shows the URL of a cluster's repository.",
        )
    return Admitted(shared.uuid, shared)


async def _push(room: GitRoom, admitted: Admitted, actor: str) -> PushContext:
    """Returns what the push may do, and who is told about it."""
    teller = _teller(room, admitted, actor)
    if admitted.shared is not None:
        return PushContext(on_pushed=teller, folder=ANY_PATH)
    return PushContext(on_pushed=teller, own=await _own(room, admitted.uuid))


async def _own(room: GitRoom, repository: UUID) -> OwnObjects:
    """Returns the objects that a push must not take over on the edge; none for a shared repository."""
    row = await room.directory.get(repository)
    if row is None:
        return NOTHING
    spaces = {EDGEWRIGHT_NAMESPACE: EDGEWRIGHT, **reserved_namespaces(row, flux=await room.flux_namespace.read())}
    flux = () if row.spec.bare else await room.flux_namespace.objects()
    return installed_objects(row.spec.namespace, spaces, flux)


async def _cluster_named(call: GitCall, name: str) -> UUID | None:
    """Finds the cluster with that name; a cluster's own credential only finds its own."""
    bare = name.removesuffix(".git")
    if isinstance(call.caller, OperatorToken):
        return await call.room.directory.find(bare)
    return call.caller.cluster if bare.lower() == call.caller.name.lower() else None


async def _shared_named(call: GitCall, name: str) -> Asked:
    bare = name.removesuffix(".git")
    return REPOSITORY_HELM_CHARTS if bare == CHARTS else await call.room.repositories.named(bare)


class _AnswerToGuest(StreamingResponse):
    """An answer that ends the visit, however the answer ends."""

    def __init__(self, answer: GitAnswer, visit: ExitStack) -> None:
        super().__init__(answer.body, headers=dict(answer.headers))
        self._visit = visit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._visit:
            await super().__call__(scope, receive, send)


def _teller(room: GitRoom, admitted: Admitted, actor: str) -> Callable[[Pushed], Awaitable[None]]:
    """Returns what to do once ``main`` has moved: record the push in the cluster's timeline and nudge its workflow.

    A shared repository belongs to no cluster, so its pushes are only in the audit log.
    """
    shared = admitted.shared
    life = f"{shared.etag} " if shared else ""  # one that was removed and made again may get the same commits

    async def tell(pushed: Pushed) -> None:
        before = pushed.old[:12] if pushed.old.strip("0") else "nothing"
        event = NewEvent(
            id=uuid5(admitted.uuid, f"git.pushed {life}{pushed.old} {pushed.new}"),
            cluster=None if shared else admitted.uuid,
            actor=actor,
            kind=EventKind.GIT_PUSHED,
            message=f"Pushed to main{f' of {shared.path}' if shared else ''}: {before} → {pushed.new[:12]}.",
            detail={"old": pushed.old, "new": pushed.new, **({"repository": shared.path} if shared else {})},
        )
        for attempt in range(EVENT_ATTEMPTS):
            try:
                await room.audit.append(event)
                break
            except EdgewrightError as error:
                _log.error("cannot record push in audit log", attempt=attempt, reason=error.detail, **event.detail)
                await asyncio.sleep(0.2)
        if shared is None:
            await room.nudges.nudge(admitted.uuid)

    return tell
