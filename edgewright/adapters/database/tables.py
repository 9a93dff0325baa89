"""Every table. What a column means stands with the type in ``ports`` or ``domain`` that it is read into."""

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    Uuid,
    event,
    false,
    literal_column,
    text,
)

from edgewright.adapters.database.columns import (
    DOCUMENT,
    MOMENT,
    POSITION,
    Choice,
    CommitsByPlace,
    OpenChoice,
    PlaceText,
    PlaceTexts,
)
from edgewright.adapters.database.columns import metadata as metadata  # noqa: PLC0414 - everybody finds it here
from edgewright.domain.cluster import (
    Acceptance,
    ConditionStatus,
    CredentialState,
    Desired,
    LeaseState,
    Phase,
    ResealState,
    Role,
    StepName,
    StepState,
    TokenState,
    Workloads,
)
from edgewright.domain.events import EventKind
from edgewright.domain.upgrades import Component, UpgradeState
from edgewright.ports.secret_staging import StagedState


def _of_cluster(*, primary_key: bool = False) -> Column[object]:
    return Column("cluster", Uuid, ForeignKey("clusters.uuid"), primary_key=primary_key, nullable=False)


# One number line for all that is read in order: changes of entries, events, staged secrets, credentials.
feed = Table("feed", metadata, Column("id", Integer, primary_key=True), Column("position", POSITION, nullable=False))

# --- Config Store ----------------------------------------------------------------------------------------

entries = Table(
    "entries",
    metadata,
    Column("app", Uuid, primary_key=True),
    Column("object", Uuid, primary_key=True),
    Column("etag", String(36), nullable=False),
    Column("position", POSITION, nullable=False),
    Column("modified_at", MOMENT, nullable=False),
    Column("body", DOCUMENT, nullable=False),
)

changes = Table(
    "changes",
    metadata,
    Column("position", POSITION, primary_key=True, autoincrement=False),
    Column("app", Uuid, nullable=False),
    Column("object", Uuid, nullable=False),
    Column("etag", String(36)),
    Column("at", MOMENT, nullable=False),
)

objects = Table(
    "objects",
    metadata,
    Column("uuid", Uuid, primary_key=True),
    Column("class", Uuid, nullable=False, key="klass", index=True),
)

memberships = Table(
    "memberships",
    metadata,
    Column("class", Uuid, primary_key=True, key="klass"),
    Column("object", Uuid, ForeignKey("objects.uuid"), primary_key=True),
)

# --- clusters: narrow columns first, so that lists need not read past the documents -----------------------

clusters = Table(
    "clusters",
    metadata,
    Column("uuid", Uuid, primary_key=True),
    Column("name", String(63), nullable=False),
    Column("name_key", String(63), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("change", Integer, nullable=False),
    Column("commissioning", Integer, nullable=False),
    Column("desired", Choice(Desired, 16), nullable=False),
    Column("closed_at", MOMENT),
    Column("created_at", MOMENT, nullable=False),
    Column("created_by", Text, nullable=False),
    # as last projected
    Column("phase", Choice(Phase, 32), nullable=False),
    Column("ready", Boolean, nullable=False),
    Column("available", Choice(ConditionStatus, 8), nullable=False),
    Column("waiting_for", Text, nullable=False),
    Column("projection_sequence", Integer, nullable=False),
    Column("change_done", Integer, nullable=False),
    Column("lease_epoch_taken", Integer, nullable=False),
    Column("projected_at", MOMENT),
    # the lease, and what the edge says beside
    Column("lease_state", Choice(LeaseState, 8), nullable=False),
    Column("lease_epoch", Integer, nullable=False),
    Column("lease_seconds", Integer, nullable=False),
    Column("last_heard", MOMENT),
    Column("lease_expires_at", MOMENT),
    Column("clock_offset", Float),
    Column("observed_revision", Text),
    Column("edge_reported_at", MOMENT),
    Column("news_at", MOMENT),
    # registration
    Column("acceptance", Choice(Acceptance, 16), nullable=False),
    Column("short_code", String(9)),
    *(Column(name, Text) for name in ("kube_system_uid", "kubernetes_version")),
    # pause and deletion
    Column("paused", Boolean, nullable=False),
    Column("paused_reason", Text, nullable=False),
    Column("force", Boolean, nullable=False),
    Column("workloads", Choice(Workloads, 8), nullable=False),
    Column("deadline", MOMENT),
    Column("desired_before", Choice(Desired, 16)),
    Column("deletion_begun_at", MOMENT),
    Column("inventory_empty_at", MOMENT),
    Column("detached_at", MOMENT),
    # the sealing certificate in use
    Column("certificate_fingerprint", String(64)),
    *(Column(name, MOMENT) for name in ("certificate_not_before", "certificate_not_after", "certificate_taken_at")),
    Column("certificate_problem", Text),
    Column("rendered_digest", Text),
    Column("labels", DOCUMENT, nullable=False),
    Column("must_reenter", PlaceTexts, nullable=False),
    Column("settings", DOCUMENT, nullable=False),
    Column("spec", DOCUMENT, nullable=False),
    Column("certificate_pem", Text),
    # added by later versions
    Column("failing", Choice(StepState, 8)),
    Column("failing_step", Choice(StepName, 32)),
    Column("underway", Boolean, nullable=False, server_default=false()),
    Column("resealing", Uuid),
    Column("reseal_due_at", MOMENT),
    Column("nonce", String(128)),
    Column("nonce_breaks", Integer, nullable=False, server_default=text("0")),
    *(Column(name, MOMENT) for name in ("nonce_broken_at", "forked_at")),
    *(Column(name, Text) for name in ("centre_url", "centre_problem", "proven_url")),
    Column("centre_ca", String(64)),
    Column("blocked", Boolean, nullable=False, server_default=false()),
    *(
        Column(name, Choice(ConditionStatus, 8), nullable=False, server_default="Unknown")
        for name in ("synced", "healthy")
    ),
    Column("trouble", Integer, nullable=False, server_default=text("4")),
    Column("proposed_fingerprint", String(64)),
    *(Column(name, MOMENT) for name in ("proposed_not_after", "proposed_at")),
    Column("proposed_pem", Text),
    Column("event_room", Float),
    Column("event_room_at", MOMENT),
    Column("events_omitted", Integer, nullable=False, server_default=text("0")),
    Column("drift", Text),
    Column("drift_lost", CommitsByPlace),
    Column("asks_flux", Boolean),
    Column("asks_flux_since", MOMENT),
    *(Column(name, Boolean) for name in ("purge", "purged")),
    Column("purge_problem", Text),
    Column("secrets_commit", Text),
    Column("rendered_commit", Text),
    Column("components", DOCUMENT),
    Column("upgrading", Choice(Component, 8)),
    Column("anchor", Text),
    Index("ix_clusters_created", "created_at", "uuid"),
    Index("ix_clusters_trouble", "trouble", "name_key", "uuid"),
    Index("ix_clusters_phase", "phase", "uuid"),
    Index("ix_clusters_lease", "lease_state"),
)
_OPEN = clusters.c.closed_at.is_(None)
Index("uq_clusters_name_key", clusters.c.name_key, unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN)
Index("ix_clusters_name", clusters.c.name_key, clusters.c.uuid)
_FAILS = clusters.c.failing.is_not(None)
Index(
    "ix_clusters_failing", clusters.c.failing, clusters.c.failing_step, sqlite_where=_FAILS, postgresql_where=_FAILS
)
_UNDERWAY = clusters.c.underway
Index("ix_clusters_underway", _UNDERWAY, sqlite_where=_UNDERWAY, postgresql_where=_UNDERWAY)
_DUE = clusters.c.reseal_due_at.is_not(None)
Index("ix_clusters_reseal_due", clusters.c.reseal_due_at, sqlite_where=_DUE, postgresql_where=_DUE)
_UPGRADING = clusters.c.upgrading.is_not(None)
Index("ix_clusters_upgrading", clusters.c.upgrading, sqlite_where=_UPGRADING, postgresql_where=_UPGRADING)
_PENDING_OR_ACCEPTED = clusters.c.acceptance.in_([literal_column("'pending'"), literal_column("'accepted'")])
ACTIVE_IDENTITY = _OPEN & (clusters.c.desired == literal_column("'present'")) & _PENDING_OR_ACCEPTED
"""Rows among which a ``kube-system`` UID may stand once. Its values are spelled out: a parameter could have any, so
SQLite would not use a partial index for it."""
Index(
    "uq_clusters_kube_system_uid",
    clusters.c.kube_system_uid,
    unique=True,
    sqlite_where=ACTIVE_IDENTITY,
    postgresql_where=ACTIVE_IDENTITY,
)

projections = Table("projections", metadata, _of_cluster(primary_key=True), Column("body", DOCUMENT, nullable=False))

labels = Table(
    "labels",
    metadata,
    _of_cluster(primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Index("ix_labels_key_value", "key", "value", "cluster"),
)

rendered_from = Table(
    "rendered_from",
    metadata,
    _of_cluster(primary_key=True),
    Column("app", Uuid, primary_key=True),
    Column("object", Uuid, primary_key=True),
    Index("ix_rendered_from_entry", "app", "object"),
)

upgrades = Table(
    "upgrades",
    metadata,
    _of_cluster(primary_key=True),
    Column("component", Choice(Component, 8), primary_key=True),
    Column("version", Text, nullable=False),
    Column("before", Text),
    Column("fallback", DOCUMENT),
    Column("state", Choice(UpgradeState, 16), nullable=False),
    Column("since", MOMENT, nullable=False),
    Column("deadline", MOMENT),
    Column("ended_at", MOMENT),
    Column("reason", Text, nullable=False),
    Index("ix_upgrades_since", "since", "cluster"),
)

addresses = Table(
    "addresses", metadata, Column("group_id", Text, primary_key=True), _of_cluster(), Index(None, "cluster")
)

# --- who gets in -----------------------------------------------------------------------------------------

registration_tokens = Table(
    "registration_tokens",
    metadata,
    Column("id", Text, primary_key=True),
    _of_cluster(),
    Column("generation", Integer, nullable=False),
    Column("state", Choice(TokenState, 16), nullable=False),
    Column("expires_at", MOMENT, nullable=False),
    Column("secret_sha256", LargeBinary(32), nullable=False),
    Column("bound_uid", Text),
    Index(None, "cluster"),
    Index("ix_registration_tokens_expiry", "state", "expires_at"),
)

credentials = Table(
    "credentials",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("sequence", POSITION, nullable=False),
    _of_cluster(),
    Column("generation", Integer, nullable=False),
    Column("role", Choice(Role, 8), nullable=False),
    Column("state", Choice(CredentialState, 16), nullable=False),
    Column("secret_sha256", LargeBinary(32), nullable=False),
    Column("created_at", MOMENT, nullable=False),
    Column("proven_at", MOMENT),
    Column("token", Text),
    Column("rotation_asked_at", MOMENT),
    Index(None, "cluster"),
)

accounts = Table(
    "accounts",
    metadata,
    Column("uuid", Uuid, primary_key=True),
    _of_cluster(),
    Column("role", Choice(Role, 8), nullable=False),
    Column("name", Text, nullable=False),
    Index(None, "cluster"),
)

grants = Table(
    "grants",
    metadata,
    Column("account", Uuid, ForeignKey("accounts.uuid"), primary_key=True),
    Column("permission", Uuid, primary_key=True),
    Column("target", Uuid, primary_key=True),
)

operator_tokens = Table(
    "operator_tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("permissions", DOCUMENT, nullable=False),
    Column("secret_sha256", LargeBinary(32), nullable=False),
    Column("created_at", MOMENT, nullable=False),
    Column("expires_at", MOMENT),
    Column("revoked_at", MOMENT),
)
Index(
    "uq_operator_tokens_name",
    operator_tokens.c.name,
    unique=True,
    sqlite_where=operator_tokens.c.revoked_at.is_(None),
    postgresql_where=operator_tokens.c.revoked_at.is_(None),
)

# --- requests, presence, events --------------------------------------------------------------------------

staged_changes = Table(
    "staged_changes",
    metadata,
    Column("sequence", POSITION, primary_key=True, autoincrement=False),
    Column("request", Uuid, nullable=False, index=True),
    _of_cluster(),
    Column("generation", Integer, nullable=False),
    Column("state", Choice(StagedState, 16), nullable=False),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("fingerprint", Text),
    Column("sealed_at", MOMENT, nullable=False),
    Column("actor", Text, nullable=False),
    Column("commit", Text),
    Column("refusal_code", Text, nullable=False),
    Column("refusal", Text, nullable=False),
    Column("ciphertext", Text),
    Column("deletes", Boolean, nullable=False),
    # added by later versions
    Column("replaces", String(64)),
    Column("template", DOCUMENT),
    Column("creates_namespace", Boolean),
)
IS_STAGED = staged_changes.c.state == literal_column("'staged'")
"""Spelled out, as ``ACTIVE_IDENTITY`` is."""
Index(
    "ix_staged_changes_waiting",
    staged_changes.c.cluster,
    staged_changes.c.sequence,
    sqlite_where=IS_STAGED,
    postgresql_where=IS_STAGED,
)

resealings = Table(
    "resealings",
    metadata,
    Column("id", Uuid, primary_key=True),
    _of_cluster(),
    Column("generation", Integer, nullable=False),
    Column("part", Integer, nullable=False),
    Column("asked_at", MOMENT, nullable=False),
    Column("asked_by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("ended_at", MOMENT),
    Index(None, "cluster"),
)

resealing_secrets = Table(
    "resealing_secrets",
    metadata,
    Column("resealing", Uuid, ForeignKey("resealings.id"), primary_key=True),
    Column("secret", PlaceText, primary_key=True),
    Column("state", Choice(ResealState, 16), nullable=False),
    Column("tried_at", MOMENT),
    Column("waits_for", Text, nullable=False),
    Column("unreadable", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("gathered", Text),
)

events = Table(
    "events",
    metadata,
    Column("position", POSITION, primary_key=True, autoincrement=False),
    Column("id", Uuid, nullable=False, unique=True),
    Column("cluster", Uuid),
    Column("actor", Text, nullable=False),
    Column("kind", OpenChoice(EventKind), nullable=False),
    Column("at", MOMENT, nullable=False),
    Column("message", Text, nullable=False),
    Column("detail", DOCUMENT, nullable=False),
    Index("ix_events_cluster_position", "cluster", "position"),
)

FIRST_FEED_ROW = "INSERT INTO feed (id, position) VALUES (1, 0)"
EVENTS_STAY_SQLITE = tuple(
    f"CREATE TRIGGER events_refuse_{verb.lower()} BEFORE {verb} ON events "
    "BEGIN SELECT RAISE(ABORT, 'events are never changed'); END"
    for verb in ("UPDATE", "DELETE")
)
EVENTS_STAY_POSTGRESQL = (
    "CREATE FUNCTION events_stay() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'events are never changed'; END $$",
    "CREATE TRIGGER events_refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
    "FOR EACH STATEMENT EXECUTE FUNCTION events_stay()",
)


def _on_create(table: Table, statement: str, dialect: str | None = None) -> None:
    ddl = DDL(statement)  # type: ignore[no-untyped-call] # SQLAlchemy has not annotated it
    event.listen(table, "after_create", ddl.execute_if(dialect=dialect))


def _after_create() -> None:
    _on_create(feed, FIRST_FEED_ROW)
    for statement in EVENTS_STAY_SQLITE:
        _on_create(events, statement, "sqlite")
    for statement in EVENTS_STAY_POSTGRESQL:
        _on_create(events, statement, "postgresql")


_after_create()

# --- Notifications, and who answers ------------------------------------------------------------------------

webhooks = Table(
    "webhooks",
    metadata,
    Column("slot", Integer, primary_key=True, autoincrement=False),  # always 1: there is one
    Column("id", Uuid, nullable=False),
    Column("url", Text, nullable=False),
    Column("secret_sha256", LargeBinary(32), nullable=False),
    Column("created_at", MOMENT, nullable=False),
    Column("cursor", POSITION, nullable=False),
    Column("failing_since", MOMENT),
    Column("stopped_at", MOMENT),
    # the newest try
    Column("last_at", MOMENT),
    Column("last_position", POSITION),
    Column("last_status", Integer),
    Column("last_attempts", Integer),
    Column("last_problem", Text),
)

notifications = Table(
    "notifications",
    metadata,
    Column("position", POSITION, primary_key=True, autoincrement=False),
    Column("cluster", Uuid, nullable=False),  # no foreign key: many are written at once, and would lock the clusters
    Column("made_at", MOMENT, nullable=False),
    Column("next_at", MOMENT, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("refused_since", MOMENT),
    Column("problem", Text, nullable=False),
    Column("turn", BigInteger, nullable=False, server_default=text("0")),
    Column("coalesced", Integer, nullable=False, server_default=text("0")),
    Index(None, "cluster", "position"),
    Index(None, "attempts", "turn", "position"),  # the order in which they are sent
)

gateway_presence = Table(
    "gateway_presence",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("listening_since", MOMENT, nullable=False),
    Column("listening_until", MOMENT, nullable=False),
)

last_sweep = Table(
    "last_sweep", metadata, Column("id", Integer, primary_key=True), Column("ended_at", MOMENT, nullable=False)
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("request_digest", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("claimed_at", MOMENT, nullable=False),
    Column("expires_at", MOMENT, nullable=False, index=True),
    Column("headers", DOCUMENT, nullable=False),
    Column("body", DOCUMENT, nullable=False),
)
