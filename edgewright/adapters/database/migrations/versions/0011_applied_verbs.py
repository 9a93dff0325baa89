"""Signals and updates that were applied, so that a reset run applies none of them again."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0011"
down_revision: str | None = "0010"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "applied_verbs",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("cluster", sa.Uuid(), nullable=False),
        sa.Column("run", sa.String(64), nullable=False),
        sa.Column("applied_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_applied_verbs_cluster_applied_at", "applied_verbs", ["cluster", "applied_at"])
