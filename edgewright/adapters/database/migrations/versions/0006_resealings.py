"""Re-sealings: which Secrets an edge is asked to seal anew for its newest key, and what it has answered."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("clusters", sa.Column("resealing", sa.Uuid()))
    op.add_column("clusters", sa.Column("reseal_due_at", MOMENT))
    op.create_index(
        "ix_clusters_reseal_due",
        "clusters",
        ["reseal_due_at"],
        sqlite_where=sa.text("reseal_due_at IS NOT NULL"),
        postgresql_where=sa.text("reseal_due_at IS NOT NULL"),
    )
    op.add_column("staged_changes", sa.Column("replaces", sa.String(64)))
    op.create_table(
        "resealings",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("cluster", sa.Uuid(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("asked_at", MOMENT, nullable=False),
        sa.Column("asked_by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("ended_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_resealings"),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.uuid"], name="fk_resealings_cluster"),
    )
    op.create_index("ix_resealings_cluster", "resealings", ["cluster"])
    op.create_table(
        "resealing_secrets",
        sa.Column("resealing", sa.Uuid(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("tried_at", MOMENT),
        sa.Column("waits_for", sa.Text(), nullable=False),
        sa.Column("unreadable", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("gathered", sa.Text()),
        sa.PrimaryKeyConstraint("resealing", "secret", name="pk_resealing_secrets"),
        sa.ForeignKeyConstraint(["resealing"], ["resealings.id"], name="fk_resealing_secrets_resealing"),
    )
