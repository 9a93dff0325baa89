"""A managed cluster: the types that all other modules share."""

from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from edgewright.domain.bounds import AtMost, Place, Sentence, Word
from edgewright.domain.check_in import CheckIn
from edgewright.domain.former_words import present_reason, present_words

MOST_NAMES = 20
"""Most names of Secrets in one reading; the full list is in the database."""


class Frozen(BaseModel):
    """Base of all values: immutable; where people write them, unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Phase(StrEnum):
    """The phase of a cluster's life; exactly one at a time."""

    COMMISSIONING = "Commissioning"
    AWAITING_BOOTSTRAP = "AwaitingBootstrap"
    PENDING_ACCEPTANCE = "PendingAcceptance"
    ACTIVE = "Active"
    DETACHING = "Detaching"
    REMOVED = "Removed"
    DELETED = "Deleted"


class ConditionType(StrEnum):
    """Independent statements about a cluster; ``docs/glossary.md`` explains each status."""

    COMMISSIONED = "Commissioned"
    ACCEPTED = "Accepted"
    JOINED = "Joined"
    AVAILABLE = "Available"
    SEALING_KEY_CURRENT = "SealingKeyCurrent"
    SYNCED = "Synced"
    CLOCK_SYNCED = "ClockSynced"
    BLOCKED = "Blocked"
    PAUSED = "Paused"
    DRIFTED = "Drifted"
    HEALTHY = "Healthy"


class ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Frozen):
    """One statement, Kubernetes-style. ``since``: when ``status`` last changed."""

    type: ConditionType
    status: ConditionStatus
    reason: Annotated[Word, AfterValidator(present_reason)]
    message: Annotated[Sentence, AfterValidator(present_words)] = ""
    since: AwareDatetime


class Desired(StrEnum):
    """What the operators want of a cluster."""

    PRESENT = "present"
    REMOVED = "removed"
    DELETED = "deleted"


class Workloads(StrEnum):
    """What a deletion does with the workloads on the edge."""

    REMOVE = "remove"
    KEEP = "keep"


class AcceptancePolicy(StrEnum):
    AUTO = "auto"
    MANUAL = "manual"


class Acceptance(StrEnum):
    """The decision about an edge that has registered; NONE: none has registered."""

    NONE = "none"
    PENDING = "pending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


class StepName(StrEnum):
    """The steps of a cluster's life, in the order in which they run."""

    WITHDRAW_STATUS = "withdraw_status"
    SUSPEND_CREDENTIALS = "suspend_credentials"
    WITHDRAW_SECRETS = "withdraw_secrets"
    ALLOCATE_ADDRESS = "allocate_address"
    CREATE_ACCOUNTS = "create_accounts"
    CREATE_REPOSITORY = "create_repository"
    POPULATE_REPOSITORY = "populate_repository"
    PUBLISH_STATUS = "publish_status"
    BEGIN_DELETION = "begin_deletion"
    REMOVE_WORKLOADS = "remove_workloads"
    AWAIT_EMPTY = "await_empty"
    AWAIT_GOODBYE = "await_goodbye"
    REVOKE_CREDENTIALS = "revoke_credentials"
    REMOVE_ACCOUNTS = "remove_accounts"
    REMOVE_ADDRESS = "remove_address"
    ARCHIVE_REPOSITORY = "archive_repository"
    REMOVE_EDGE_STATUS = "remove_edge_status"
    REMOVE_SETUP_STATUS = "remove_setup_status"


class StepState(StrEnum):
    """The state of a step in the present plan; WAITING and BLOCKED: its last attempt failed.

    A WAITING step is retried at ``next_at``, a BLOCKED one when a person has changed something; a SKIPPED one is left
    out.
    """

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    BLOCKED = "blocked"
    DONE = "done"
    SKIPPED = "skipped"


class Role(StrEnum):
    """The two credentials of a cluster: *flux* reads Git, *agent* reports."""

    FLUX = "flux"
    AGENT = "agent"


class CredentialState(StrEnum):
    PENDING = "pending"
    ACTIVE = "active"
    SUSPENDED = "suspended"
    DETACH_ONLY = "detach-only"
    REVOKED = "revoked"


class TokenState(StrEnum):
    """The state of a registration token; EXPIRED and REPLACED are final."""

    ISSUED = "issued"
    BOUND = "bound"
    SPENT = "spent"
    EXPIRED = "expired"
    REPLACED = "replaced"


class Order(StrEnum):
    """What the centre asks the agent to do, in the answer to each heartbeat."""

    NONE = "none"
    REPORT_EMPTY = "report_empty"
    DETACH = "detach"


class ClusterSpec(Frozen):
    """The configuration entry of a cluster. ``chart``: UUID of a Helm chart template; None: the default."""

    name: str
    namespace: str
    chart: UUID | None = None
    bare: bool = False
    values: dict[str, Any] = Field(default_factory=dict)


class ClusterSettings(Frozen):
    """The entry of the Application *Edgewright cluster settings*."""

    labels: dict[str, str] = Field(default_factory=dict)
    accept: AcceptancePolicy = AcceptancePolicy.AUTO
    lease_seconds: Annotated[int, Field(ge=10, le=30 * 86400)] = 300
    check_in: CheckIn | None = None

    def entry(self) -> dict[str, Any]:
        """Returns the document; fields of later versions are left out if they are not set."""
        return self.model_dump(mode="json", exclude=None if self.check_in else {"check_in"})


class Fence(Frozen):
    """Part of every mutating activity: an effect whose fence is older than the row is refused."""

    cluster: UUID
    generation: int
    change: int

    def trailer(self) -> str:
        """Returns the fence as a trailer of a commit."""
        return f"{self.generation}/{self.change}"


class CertificateFacts(Frozen):
    """Facts about the sealing certificate in use. ``fingerprint``: SHA-256 of the DER, hexadecimal."""

    fingerprint: Word
    not_before: AwareDatetime
    not_after: AwareDatetime
    taken_at: AwareDatetime


class ResealState(StrEnum):
    """Where a Secret is in a re-sealing."""

    WANTED = "wanted"
    GATHERED = "gathered"
    ANSWERED = "answered"


class Resealing(Frozen):
    """One re-sealing of one cluster.

    Args:
        asked_by: who requested it; ``centre`` if it began by itself.
        secrets: how many Secrets it covers.
        left: how many of them the edge has not answered for.
        unreadable: ``namespace/name/key`` of the first values that no key of the edge opens, and that nobody has
            entered again since.
        unreadable_count: how many there are; 0 if an older version wrote this.
        waiting: what some of the remaining Secrets wait for, as sentences.
        ended_at: when the edge had answered for all; None: under way.
    """

    id: UUID
    asked_at: AwareDatetime
    asked_by: Word
    reason: Sentence = ""
    secrets: int
    left: int
    unreadable: Annotated[tuple[Place, ...], AtMost(MOST_NAMES)] = ()
    unreadable_count: int = 0
    waiting: Annotated[tuple[Sentence, ...], AtMost(MOST_NAMES)] = ()
    ended_at: AwareDatetime | None = None


class LeaseState(StrEnum):
    NEVER = "never"
    CURRENT = "current"
    EXPIRED = "expired"


class Lease(Frozen):
    """The lease of an edge. ``epoch`` counts the transitions between current and expired."""

    state: LeaseState = LeaseState.NEVER
    epoch: int = 0
    last_heard: AwareDatetime | None = None
    expires_at: AwareDatetime | None = None
    clock_offset_seconds: float | None = None


class ProposedCertificate(Frozen):
    """A sealing certificate that arrived by a signal. It is not used until an admin confirms it."""

    fingerprint: Word
    not_after: AwareDatetime
    proposed_at: AwareDatetime


class DeliveryProblem(Frozen):
    """What keeps an edge from fetching, applying or installing what was rendered for it.

    Args:
        reason: reason of the condition *Synced*: ``FetchFailed``, ``ApplyFailed``, ``ReleaseFailed``,
            ``FluxSuspended`` or ``Progressing``.
        message: names Flux's object, and quotes Flux.
    """

    reason: Word
    message: Sentence


class EdgeHealth(Frozen):
    """What is wrong on an edge, according to its reports.

    Args:
        reason: reason of the condition *Healthy*: ``Healthy``, or the reason of the first finding.
        message: says what is wrong, and how many more findings there are; empty: nothing is wrong.
    """

    reason: Word
    message: Sentence = ""


class Wanted(Frozen):
    """One reading of the database: everything that decides what the workflow of a cluster does next.

    Args:
        change: incremented by every transaction that changes what is wanted; the fence's second number.
        generation: number of the hardware; incremented by a recreation for new hardware.
        commissioning: number of the commissioning; incremented when an entry is written again, or by a recreation.
        closed: the deletion has finished; nothing is left to do.
        render_digest: digest of everything that the generated files depend on.
        rendering_begun: files may have been committed whose inputs nobody has recorded.
        render_problem: why the files cannot be rendered, if so (a sentence with file, path and reason).
        bootstrapped: a credential was registered in this generation.
        can_answer: the agent has an active credential; without one, the edge can report nothing.
        deadline: when a deletion stops waiting for the edge.
        force: the deletion does not wait for the edge.
        inventory_empty_at, detached_at: when the agent reported this during a deletion.
        observed_revision: the revision that the edge reports as applied.
        observed_descends: whether it is, or descends from, the head; None: unknown.
        delivery_problem: why the edge does not fetch, apply or install, as it reports; None: it reports no problem.
        edge_health: what is wrong on the edge; None: it has reported nothing to judge by.
        head: the newest commit of the repository, whoever made it; None: unknown.
        secrets_pending: staged secret changes that are in no commit yet.
        secrets_commit: the newest commit of secrets, if it is newer than the desired revision in the request.
        must_reenter: the first values that a recreation for new hardware removed, or that no key of the edge opens
            any more, as ``namespace/name/key``.
        resealing: the one under way, or the last one while some of its unreadable values are missing.
        projected_sequence: sequence of the projection in the database; 0: none.
        unread_news: the edge reported something since that projection; any publication tells the sweep it was read.
        identity_problem: why there seem to be two edges with this identity; None: there is one.
        window_opens_at: when the edge is expected to call next; None: now, or at any time.
        review_at: when this reading may become out of date just because time passes.
        edge_reported_at: when the edge last wrote its status or proved a credential; None: never.
        drift: what a put-back copy of the repository or the database has lost; empty: nothing.
        unopened: the first values that no key of the edge opens, as the edge found by itself, and that nobody has
            entered again since, as ``namespace/name/key``.
        unopened_count: how many there are.
    """

    uuid: UUID
    name: Word
    namespace: Word
    generation: int
    change: int
    commissioning: int
    desired: Desired
    closed: bool = False
    render_digest: Word | None = None
    rendering_begun: bool = False
    render_problem: Sentence | None = None
    bootstrapped: bool = False
    can_answer: bool = True
    acceptance: Acceptance = Acceptance.NONE
    short_code: Word | None = None
    edge_reported_at: AwareDatetime | None = None
    lease: Lease = Lease()
    certificate: CertificateFacts | None = None
    certificate_problem: Sentence | None = None
    certificate_proposed: ProposedCertificate | None = None
    observed_revision: Word | None = None
    observed_descends: bool | None = None
    delivery_problem: DeliveryProblem | None = None
    head: Word | None = None
    secrets_pending: int = 0
    secrets_commit: Word | None = None
    must_reenter: Annotated[tuple[Place, ...], AtMost(MOST_NAMES)] = ()
    resealing: Resealing | None = None
    paused: bool = False
    paused_reason: Sentence = ""
    force: bool = False
    workloads: Workloads = Workloads.REMOVE
    deadline: AwareDatetime | None = None
    inventory_empty_at: AwareDatetime | None = None
    detached_at: AwareDatetime | None = None
    rotation_problem: Sentence | None = None
    identity_problem: Sentence | None = None
    window_opens_at: AwareDatetime | None = None
    projected_sequence: int = 0
    unread_news: bool = False
    review_at: AwareDatetime | None = None
    labels: Annotated[dict[Word, Word], AtMost(100)] = Field(default_factory=dict)
    drift: Sentence = ""
    edge_health: EdgeHealth | None = None
    unopened: Annotated[tuple[Place, ...], AtMost(MOST_NAMES)] = ()
    unopened_count: int = 0
