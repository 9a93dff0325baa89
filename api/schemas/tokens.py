"""Bodies of operator tokens."""

from datetime import datetime

from pydantic import ConfigDict, Field

from api.schemas.base import Answer, Wish
from edgewright.ports.operators import Permission


class NewToken(Wish):
    """A token to make. ``expires_in``: seconds; null: it lives until it is revoked."""

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
    """``token`` is shown this once and kept nowhere."""

    token: str


class TokenList(Answer):
    items: list[TokenBody]


class SessionToken(Answer):
    """``expiry``: milliseconds since 1970."""

    token: str
    expiry: int
