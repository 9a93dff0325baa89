"""Bodies of health."""

from typing import Literal
from uuid import UUID

from pydantic import Field

from api.schemas.base import Answer


class Software(Answer):
    vendor: str
    application: str
    revision: str


class Ping(Answer):
    service: UUID
    version: str
    software: Software


class Health(Answer):
    """``degraded`` names what is away or held back without keeping the gateway from its work."""

    status: Literal["ok"] = "ok"
    degraded: list[str] = Field(default_factory=list)
