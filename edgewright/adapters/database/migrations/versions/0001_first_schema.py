"""The first schema."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0001"
down_revision: str | None = None
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "changes",
        sa.Column("position", POSITION, autoincrement=False, nullable=False),
        sa.Column("app", sa.Uuid(), nullable=False),
        sa.Column("object", sa.Uuid(), nullable=False),
        sa.Column("etag", sa.String(length=36), nullable=True),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_changes"),
    )
    op.create_table(
        "clusters",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("name_key", sa.String(length=63), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("change", sa.Integer(), nullable=False),
        sa.Column("commissioning", sa.Integer(), nullable=False),
        sa.Column("desired", sa.String(length=16), nullable=False),
        sa.Column("closed_at", MOMENT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("phase", sa.String(length=32), nullable=False),
        sa.Column("ready", sa.Boolean(), nullable=False),
        sa.Column("available", sa.String(length=8), nullable=False),
        sa.Column("waiting_for", sa.Text(), nullable=False),
        sa.Column("projection_sequence", sa.Integer(), nullable=False),
        sa.Column("change_done", sa.Integer(), nullable=False),
        sa.Column("lease_epoch_taken", sa.Integer(), nullable=False),
        sa.Column("projected_at", MOMENT, nullable=True),
        sa.Column("lease_state", sa.String(length=8), nullable=False),
        sa.Column("lease_epoch", sa.Integer(), nullable=False),
        sa.Column("lease_seconds", sa.Integer(), nullable=False),
        sa.Column("last_heard", MOMENT, nullable=True),
        sa.Column("lease_expires_at", MOMENT, nullable=True),
        sa.Column("clock_offset", sa.Float(), nullable=True),
        sa.Column("observed_revision", sa.Text(), nullable=True),
        sa.Column("edge_reported_at", MOMENT, nullable=True),
        sa.Column("news_at", MOMENT, nullable=True),
        sa.Column("acceptance", sa.String(length=16), nullable=False),
        sa.Column("short_code", sa.String(length=9), nullable=True),
        sa.Column("kube_system_uid", sa.Text(), nullable=True),
        sa.Column("kubernetes_version", sa.Text(), nullable=True),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("paused_reason", sa.Text(), nullable=False),
        sa.Column("force", sa.Boolean(), nullable=False),
        sa.Column("workloads", sa.String(length=8), nullable=False),
        sa.Column("deadline", MOMENT, nullable=True),
        sa.Column("desired_before", sa.String(length=16), nullable=True),
        sa.Column("deletion_begun_at", MOMENT, nullable=True),
        sa.Column("inventory_empty_at", MOMENT, nullable=True),
        sa.Column("detached_at", MOMENT, nullable=True),
        sa.Column("certificate_fingerprint", sa.String(length=64), nullable=True),
        sa.Column("certificate_not_before", MOMENT, nullable=True),
        sa.Column("certificate_not_after", MOMENT, nullable=True),
        sa.Column("certificate_taken_at", MOMENT, nullable=True),
        sa.Column("certificate_problem", sa.Text(), nullable=True),
        sa.Column("rendered_digest", sa.Text(), nullable=True),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("must_reenter", sa.JSON(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("certificate_pem", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("uuid", name="pk_clusters"),
    )
    op.create_index("ix_clusters_created", "clusters", ["created_at", "uuid"], unique=False)
    op.create_index("ix_clusters_lease", "clusters", ["lease_state"], unique=False)
    op.create_index("ix_clusters_name", "clusters", ["name_key", "uuid"], unique=False)
    op.create_index("ix_clusters_phase", "clusters", ["phase", "uuid"], unique=False)
    op.create_index(
        "uq_clusters_kube_system_uid",
        "clusters",
        ["kube_system_uid"],
        unique=True,
        sqlite_where=sa.text("closed_at IS NULL AND desired = 'present' AND acceptance IN ('pending', 'accepted')"),
        postgresql_where=sa.text(
            "closed_at IS NULL AND desired = 'present' AND acceptance IN ('pending', 'accepted')"
        ),
    )
    op.create_index(
        "uq_clusters_name_key",
        "clusters",
        ["name_key"],
        unique=True,
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.create_table(
        "entries",
        sa.Column("app", sa.Uuid(), nullable=False),
        sa.Column("object", sa.Uuid(), nullable=False),
        sa.Column("etag", sa.String(length=36), nullable=False),
        sa.Column("position", POSITION, nullable=False),
        sa.Column("modified_at", MOMENT, nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("app", "object", name="pk_entries"),
    )
    op.create_table(
        "events",
        sa.Column("position", POSITION, autoincrement=False, nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("cluster", sa.Uuid(), nullable=True),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_events"),
        sa.UniqueConstraint("id", name="uq_events_id"),
    )
    op.create_index("ix_events_cluster_position", "events", ["cluster", "position"], unique=False)
    op.create_table(
        "feed",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("position", POSITION, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_feed"),
    )
    op.create_table(
        "gateway_presence",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("listening_since", MOMENT, nullable=False),
        sa.Column("listening_until", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_gateway_presence"),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("request_digest", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("claimed_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_expires_at", "idempotency_keys", ["expires_at"], unique=False)
    op.create_table(
        "objects",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("class", sa.Uuid(), nullable=False),
        sa.PrimaryKeyConstraint("uuid", name="pk_objects"),
    )
    op.create_index("ix_objects_class", "objects", ["class"], unique=False)
    op.create_table(
        "operator_tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("permissions", sa.JSON(), nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=True),
        sa.Column("revoked_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_operator_tokens"),
    )
    op.create_index(
        "uq_operator_tokens_name",
        "operator_tokens",
        ["name"],
        unique=True,
        sqlite_where=sa.text("revoked_at IS NULL"),
        postgresql_where=sa.text("revoked_at IS NULL"),
    )
    op.create_table(
        "accounts",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("cluster", sa.Uuid(), nullable=False),
        sa.Column("role", sa.String(length=8), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.uuid"], name="fk_accounts_cluster"),
        sa.PrimaryKeyConstraint("uuid", name="pk_accounts"),
    )
    op.create_index("ix_accounts_cluster", "accounts", ["cluster"], unique=False)
    op.create_table(
        "addresses",
        sa.Column("group_id", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.uuid"], name="fk_addresses_cluster"),
        sa.PrimaryKeyConstraint("group_id", name="pk_addresses"),
    )
    op.create_index("ix_addresses_cluster", "addresses", ["cluster"], unique=False)
    op.create_table(
        "credentials",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("sequence", POSITION, nullable=False),
        sa.Column("cluster", sa.Uuid(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=8), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("proven_at", MOMENT, nullable=True),
        sa.Column("token", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.uuid"], name="fk_credentials_cluster"),
        sa.PrimaryKeyConstraint("id", name="pk_credentials"),
    )
    op.create_index("ix_credentials_cluster", "credentials", ["cluster"], unique=False)
    op.create_table(
        "labels",
        sa.Column("cluster", sa.Uuid(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.uuid"], name="fk_labels_cluster"),
        sa.PrimaryKeyConstraint("cluster", "key", name="pk_labels"),
    )
    op.create_index("ix_labels_key_value", "labels", ["key", "value", "cluster"], unique=False)
    op.create_table(
        "memberships",
        sa.Column("class", sa.Uuid(), nullable=False),
        sa.Column("object", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(["object"], ["objects.uuid"], name="fk_memberships_object"),
        sa.PrimaryKeyConstraint("class", "object", name="pk_memberships"),
    )
    op.create_table(
        "projections",
        sa.Column("cluster", sa.Uuid(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.uuid"], name="fk_projections_cluster"),
        sa.PrimaryKeyConstraint("cluster", name="pk_projections"),
    )
    op.create_table(
        "registration_tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Uuid(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("bound_uid", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.uuid"], name="fk_registration_tokens_cluster"),
        sa.PrimaryKeyConstraint("id", name="pk_registration_tokens"),
    )
    op.create_index("ix_registration_tokens_cluster", "registration_tokens", ["cluster"], unique=False)
    op.create_index("ix_registration_tokens_expiry", "registration_tokens", ["state", "expires_at"], unique=False)
    op.create_table(
        "rendered_from",
        sa.Column("cluster", sa.Uuid(), nullable=False),
        sa.Column("app", sa.Uuid(), nullable=False),
        sa.Column("object", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.uuid"], name="fk_rendered_from_cluster"),
        sa.PrimaryKeyConstraint("cluster", "app", "object", name="pk_rendered_from"),
    )
    op.create_index("ix_rendered_from_entry", "rendered_from", ["app", "object"], unique=False)
    op.create_table(
        "staged_changes",
        sa.Column("sequence", POSITION, autoincrement=False, nullable=False),
        sa.Column("request", sa.Uuid(), nullable=False),
        sa.Column("cluster", sa.Uuid(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("sealed_at", MOMENT, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("commit", sa.Text(), nullable=True),
        sa.Column("refusal_code", sa.Text(), nullable=False),
        sa.Column("refusal", sa.Text(), nullable=False),
        sa.Column("ciphertext", sa.Text(), nullable=True),
        sa.Column("deletes", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.uuid"], name="fk_staged_changes_cluster"),
        sa.PrimaryKeyConstraint("sequence", name="pk_staged_changes"),
    )
    op.create_index("ix_staged_changes_request", "staged_changes", ["request"], unique=False)
    op.create_index(
        "ix_staged_changes_waiting",
        "staged_changes",
        ["cluster", "sequence"],
        unique=False,
        sqlite_where=sa.text("state = 'staged'"),
        postgresql_where=sa.text("state = 'staged'"),
    )
    op.create_table(
        "grants",
        sa.Column("account", sa.Uuid(), nullable=False),
        sa.Column("permission", sa.Uuid(), nullable=False),
        sa.Column("target", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(["account"], ["accounts.uuid"], name="fk_grants_account"),
        sa.PrimaryKeyConstraint("account", "permission", "target", name="pk_grants"),
    )

    op.execute("INSERT INTO feed (id, position) VALUES (1, 0)")
    if op.get_bind().dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER events_refuse_{verb.lower()} BEFORE {verb} ON events "
                "BEGIN SELECT RAISE(ABORT, 'events are never changed'); END"
            )
    else:
        op.execute(
            "CREATE FUNCTION events_stay() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'events are never changed'; END $$"
        )
        op.execute(
            "CREATE TRIGGER events_refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
            "FOR EACH STATEMENT EXECUTE FUNCTION events_stay()"
        )
