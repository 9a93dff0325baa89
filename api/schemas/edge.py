"""Bodies of bootstrap, registration and the agent."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.base import Answer, Wish
from edgewright.domain.cluster import Role


class TokenWish(Wish):
    """``expires_in``: seconds, at most 7 days."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [{"expires_in": 3600}]})

    expires_in: int = Field(default=3600, ge=60, le=604_800)


class RegistrationLine(Answer):
    """``command`` is the line to run where ``kubectl`` reaches the cluster; treat it like a password."""

    url: str
    command: str
    expires_at: datetime
    warning: str | None = None


class NewRegistration(Wish):
    """What the bootstrap script sends: who the cluster says it is, and the two secrets made there."""

    kube_system_uid: str = Field(pattern=r"^[0-9A-Za-z-]{1,64}$")
    kubernetes_version: str = Field(pattern=r"^[\x20-\x7e]{1,64}$")
    flux_secret: str = Field(repr=False, pattern=r"^ewf_[0-9a-f]{64}$")
    agent_secret: str = Field(repr=False, pattern=r"^ewa_[0-9a-f]{64}$")


class Registered(Answer):
    """``short_code``: what an operator compares before accepting."""

    state: Literal["accepted", "pending"]
    short_code: str
    cluster: UUID
    generation: int


class HeartbeatWish(BaseModel):
    """A sign of life. An agent newer than the centre may send more.

    ``status_digest``: what the answer to the last status said (header ``Edgewright-Status-Digest``).
    ``inventory_empty``: no workload is left; counts during a deletion only.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    sent_at: datetime | None = None
    observed_revision: str | None = Field(default=None, max_length=300)
    status_digest: str | None = Field(default=None, max_length=128)
    inventory_empty: bool = False
    nonce: str | None = Field(default=None, max_length=128)


class HeartbeatAnswer(Answer):
    """What the centre wants of the agent; a field that is absent is not wanted.

    ``state``: of the credential. ``interval``: seconds to the next heartbeat. ``rotate``: roles whose credential
    to replace. ``reseal``: secrets to re-encrypt. ``report_empty``: say when no workload is left. ``detach``:
    remove what bootstrap installed and say goodbye. ``nonce``: as sent.
    """

    state: str
    interval: int
    status_due: bool | None = None
    rotate: list[Role] | None = None
    reseal: list[str] | None = None
    report_empty: bool | None = None
    detach: bool | None = None
    suspended: bool | None = None
    nonce: str | None = None


class NewCredential(Wish):
    """The successor of one of the cluster's credentials, made on the edge."""

    role: Role
    secret: str = Field(repr=False, pattern=r"^ew[fa]_[0-9a-f]{64}$")


class CredentialBody(Answer):
    """``state``: pending until its first use."""

    role: Role
    state: str
