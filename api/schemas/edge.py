"""Bodies of bootstrap, registration and the agent."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.base import Answer, ShortText, Wish
from edgewright.domain.cluster import CredentialState, Role, Workloads


class TokenWish(Wish):
    """``expires_in``: seconds, at most 7 days."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [{"expires_in": 3600}]})

    expires_in: int = Field(default=3600, ge=60, le=604_800)


class RegistrationLine(Answer):
    """``command`` is the line to run where ``kubectl`` reaches the cluster; treat it like a password.

    ``flux``: the release that an edge without Flux gets; null: none. ``agent_image``: the image of its agent; null:
    it gets no agent, and is never *Available*. ``agent_image_served``: nodes pull that image from this gateway.
    ``ca_bundle``: PEM to verify ``url`` with. ``command`` contains it; use it if you fetch the script in another way.
    Null: the machine's own certificates.
    """

    url: str
    command: str
    expires_at: datetime
    warning: str | None = None
    flux: str | None = None
    agent_image: str | None = None
    agent_image_served: bool = False
    ca_bundle: str | None = None


class NewRegistration(Wish):
    """What the bootstrap script sends: the identity of the cluster, and the two secrets made there."""

    kube_system_uid: str = Field(pattern=r"^[0-9A-Za-z-]{1,64}$")
    kubernetes_version: str = Field(pattern=r"^[\x20-\x7e]{1,64}$")
    flux_secret: str = Field(repr=False, pattern=r"^ewf_[0-9a-f]{64}$")
    agent_secret: str = Field(repr=False, pattern=r"^ewa_[0-9a-f]{64}$")


class Registered(Answer):
    """``short_code``: the code that an operator compares before accepting."""

    state: Literal["accepted", "pending"]
    short_code: str
    cluster: UUID
    generation: int


class HeartbeatWish(BaseModel):
    """A heartbeat. An agent newer than the centre may send more fields.

    ``status_digest``: from the answer to the last status (header ``Edgewright-Status-Digest``).
    ``inventory_empty``: no workload is left; only used during a deletion.
    ``flux_sha256``: SHA-256 of the secret that Flux uses on the edge, hexadecimal. Without it, the centre never asks
    for a new one.
    ``nonce``: repeated until it is answered. ``previous_nonce``: the last one that was answered; absent: the agent
    has just started.
    ``centre_url``: where the agent reaches the centre. ``centre_ca_sha256``: SHA-256 of the certificates (PEM,
    without surrounding white space) that it uses to trust the centre; absent: those of its machine.
    ``centre_problem``: why it does not move. ``holds_former``: it still has the centre's previous URL.
    ``wait``: seconds for which the centre may delay the answer while nothing new is wanted; needs ``wants_digest``
    and ``revisions`` from the last answer.
    ``asks_flux``: Flux fetches when the agent asks it to, so its own interval may be long; absent: unknown.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    sent_at: datetime | None = None
    observed_revision: str | None = Field(default=None, max_length=300)
    status_digest: str | None = Field(default=None, max_length=128)
    inventory_empty: bool = False
    nonce: str | None = Field(default=None, max_length=128)
    flux_sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    previous_nonce: str | None = Field(default=None, max_length=128)
    centre_url: str | None = Field(default=None, max_length=600)
    centre_ca_sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    centre_problem: str | None = Field(default=None, max_length=300)
    holds_former: bool = False
    wait: float = Field(default=0, ge=0)
    wants_digest: str | None = Field(default=None, max_length=128)
    revisions: dict[ShortText, ShortText] = Field(default_factory=dict, max_length=8)
    asks_flux: bool | None = None


class CheckInSpan(Answer):
    """A weekly check-in window, in seconds after this answer; negative: before it."""

    opens_in: float
    closes_in: float


class NewDoor(Answer):
    """Where to reach the centre. ``ca_bundle``: PEM to trust it with; null: what the edge's machine trusts."""

    url: str
    ca_bundle: str | None


class DetachOrder(Answer):
    """The order, for one cluster and generation, to remove what bootstrap installed and to say goodbye.

    ``workloads``: whether to remove what Flux has applied and not pruned yet, or to keep it running. ``purge``: also
    remove the kind SealedSecret and the sealing keys, unless somebody else uses them.
    """

    cluster: UUID
    generation: int
    workloads: Workloads
    purge: bool = False


class Goodbye(BaseModel):
    """The result of a purge, if the order asked for one. ``purged`` false: everything stays, and ``purge_problem``
    says why. Without ``purged``: this edge does not report it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    purged: bool | None = None
    purge_problem: str | None = Field(default=None, max_length=300)


class HeartbeatAnswer(Answer):
    """What the centre wants from the agent. An absent field asks for nothing.

    ``state``: state of the credential. ``interval``: seconds to the next heartbeat. ``rotate``: roles whose
    credential to replace. ``reseal``: Secrets to re-encrypt, ``namespace/name``. ``report_empty``: say when no
    workload is left, once Flux has applied ``revision``, the commit that removes them. ``detach``: carry out the
    ``detach_order``.
    ``nonce``: as sent. ``check_in``: when to call; absent: at any time. ``move_to``: where to reach the centre from
    now on, if that works. ``forget_former``: drop the previous URL for good.
    For an agent that offers to wait: ``revisions``: the commit that each of Flux's sources should fetch, by name of
    the source, without those that are unknown now; ``wants_digest``: changes when anything else is wanted.
    """

    state: CredentialState
    interval: int
    status_due: bool | None = None
    rotate: list[Role] | None = None
    reseal: list[str] | None = None
    report_empty: bool | None = None
    revision: str | None = None
    detach: bool | None = None
    detach_order: DetachOrder | None = None
    suspended: bool | None = None
    nonce: str | None = None
    check_in: list[CheckInSpan] | None = None
    move_to: NewDoor | None = None
    forget_former: bool | None = None
    revisions: dict[str, str] | None = None
    wants_digest: str | None = None


class NewCredential(Wish):
    """The successor of one of the cluster's credentials, made on the edge."""

    role: Role
    secret: str = Field(repr=False, pattern=r"^ew[fa]_[0-9a-f]{64}$")


class RotationWish(Wish):
    """``roles``: roles whose credential the edge is to replace."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [{"roles": ["flux"]}]})

    roles: list[Role] = Field(default=[Role.FLUX, Role.AGENT], min_length=1, max_length=2)


class RotationWanted(Answer):
    """``roles``: all roles whose credential the edge is asked to replace now, including earlier requests."""

    roles: list[Role]


class CredentialBody(Answer):
    """``state``: pending until its first use."""

    role: Role
    state: CredentialState
