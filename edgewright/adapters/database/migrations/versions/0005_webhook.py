"""The webhook, and the notifications that wait for it."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("slot", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("cursor", POSITION, nullable=False),
        sa.Column("failing_since", MOMENT, nullable=True),
        sa.Column("stopped_at", MOMENT, nullable=True),
        sa.Column("last_at", MOMENT, nullable=True),
        sa.Column("last_position", POSITION, nullable=True),
        sa.Column("last_status", sa.Integer(), nullable=True),
        sa.Column("last_attempts", sa.Integer(), nullable=True),
        sa.Column("last_problem", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("slot", name="pk_webhooks"),
    )
    op.create_table(
        "notifications",
        sa.Column("position", POSITION, autoincrement=False, nullable=False),
        sa.Column("cluster", sa.Uuid(), nullable=False),
        sa.Column("made_at", MOMENT, nullable=False),
        sa.Column("next_at", MOMENT, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("refused_since", MOMENT, nullable=True),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_notifications"),
    )
    op.create_index("ix_notifications_cluster_position", "notifications", ["cluster", "position"])
    op.create_index("ix_notifications_attempts_position", "notifications", ["attempts", "position"])
