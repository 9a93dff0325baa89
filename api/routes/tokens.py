"""Operator tokens, and the session tokens that ACS clients ask for."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypedDict

from fastapi import APIRouter, Depends, Request
from pydantic import ConfigDict, Field
from starlette.responses import JSONResponse, Response

from api.allowances import Allowance
from api.auth import SESSION_PREFIX, Administrator, Known, actor_of, asker, require_active, session_root
from api.bodies import JsonBody
from api.edge_sessions import session_name
from api.idempotency import as_json
from api.schemas.base import Answer, Wish
from edgewright.domain.credentials import SECRET_BYTES, TOKEN_ID_BYTES, Token, operator_token
from edgewright.errors import NotFound
from edgewright.ports.operators import OperatorToken, OperatorTokens, Permission

SESSION_LIFETIME = timedelta(hours=1)
NO_STORE = {"Cache-Control": "no-store"}

router = APIRouter(tags=["tokens"])


@dataclass(frozen=True)
class TokenRoom:
    """Ports for tokens. ``sessions``: the allowance of sessions of each operator token or cluster."""

    operators: OperatorTokens
    sessions: Allowance


async def token_room_of(request: Request) -> TokenRoom:
    """Returns that of this request's application. Async, because FastAPI runs plain functions in threads."""
    room: TokenRoom = request.app.state.token_room
    return room


TheTokenRoom = Annotated[TokenRoom, Depends(token_room_of)]


class NewToken(Wish):
    """A token to create. ``expires_in``: seconds; null: it lives until it is revoked."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={"examples": [{"name": "ci", "permissions": ["read", "secrets"], "expires_in": 2592000}]},
    )

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@ -]{0,62}$")
    permissions: list[Permission] = Field(min_length=1)
    expires_in: int | None = Field(default=None, ge=60, le=10 * 366 * 86400)


class TokenBody(Answer):
    """A token without its secret."""

    id: str
    name: str
    permissions: list[Permission]
    created_at: datetime
    expires_at: datetime | None


class NewTokenBody(TokenBody):
    """``token`` is shown only this once and stored nowhere."""

    token: str


class TokenList(Answer):
    items: list[TokenBody]


class SessionToken(Answer):
    """``expiry``: milliseconds since 1970."""

    token: str
    expiry: int


@router.get("/v1/token", summary="List operator tokens")
async def list_tokens(*, _operator: Administrator, room: TheTokenRoom) -> TokenList:
    """All living tokens, without their secrets."""
    return TokenList(items=[TokenBody(**_facts(token)) for token in await room.operators.list()])


@router.post("/v1/token", status_code=201, summary="Make an operator token", response_model=NewTokenBody)
async def create_token(
    *, operator: Administrator, wish: Annotated[NewToken, Depends(JsonBody(NewToken))], room: TheTokenRoom
) -> Response:
    """The secret is shown only this once. `Location` is the path of the token."""
    now = datetime.now(UTC)
    drawn = draw()
    token = OperatorToken(
        id=drawn.id,
        name=wish.name,
        permissions=frozenset(wish.permissions),
        secret_sha256=drawn.sha256,
        created_at=now,
        expires_at=None if wish.expires_in is None else now + timedelta(seconds=wish.expires_in),
    )
    await room.operators.add(token, actor=actor_of(operator))
    body = NewTokenBody(**_facts(token), token=drawn.text)
    return JSONResponse(as_json(body), 201, {**NO_STORE, "Location": f"/v1/token/{token.id}"})


@router.delete("/v1/token/{token_id}", status_code=204, summary="Revoke an operator token")
async def revoke_token(*, token_id: str, operator: Administrator, room: TheTokenRoom) -> Response:
    """Takes effect at once, on every gateway, and also ends the sessions that the token has opened."""
    if not await room.operators.revoke(token_id, actor=actor_of(operator)):
        raise NotFound("There is no such token.", code="token_unknown")
    return Response(status_code=204)


@router.post("/token", summary="Open a session, as ACS clients do", response_model=SessionToken)
async def create_session(*, caller: Known, room: TheTokenRoom) -> Response:
    """Makes a token with the same permissions that lives for an hour, but not longer than what opened it.

    If a cluster's agent opens it, it can read and write that cluster's *Edge cluster status* and find services.
    """
    room.sessions.spend(asker(caller) if isinstance(caller, OperatorToken) else caller.cluster, 1)
    now, drawn = datetime.now(UTC), draw()
    expires_at = now + SESSION_LIFETIME
    if isinstance(caller, OperatorToken):
        name = f"{SESSION_PREFIX}{session_root(caller) or caller.id}:{drawn.id}"
        permissions, actor = caller.permissions, actor_of(caller)
        expires_at = expires_at if caller.expires_at is None else min(expires_at, caller.expires_at)
    else:
        name = session_name(require_active(caller), drawn.id)
        permissions, actor = frozenset[Permission](), caller.actor
    token = OperatorToken(
        id=drawn.id,
        name=name,
        permissions=permissions,
        secret_sha256=drawn.sha256,
        created_at=now,
        expires_at=expires_at,
    )
    edge = None if isinstance(caller, OperatorToken) else caller.cluster
    await room.operators.add(token, actor=actor, edge=edge)
    body = SessionToken(token=drawn.text, expiry=int(expires_at.timestamp() * 1000))
    return JSONResponse(as_json(body), headers=NO_STORE)


def draw() -> Token:
    """A fresh operator token."""
    return operator_token(secrets.token_bytes(TOKEN_ID_BYTES), secrets.token_bytes(SECRET_BYTES))


class _Facts(TypedDict):
    """What may be shown of a token."""

    id: str
    name: str
    permissions: list[Permission]
    created_at: datetime
    expires_at: datetime | None


def _facts(token: OperatorToken) -> _Facts:
    return {
        "id": token.id,
        "name": token.name,
        "permissions": sorted(token.permissions),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
    }
